package schemas

import (
	"errors"
	"fmt"
)

// Reason is the class of fault for which an event is refused.
type Reason string

// The reasons. None of them goes away by a retry.
const (
	ReasonTooLarge        Reason = "too_large"
	ReasonSyntax          Reason = "syntax"
	ReasonMissingField    Reason = "missing_field"
	ReasonInvalidField    Reason = "invalid_field"
	ReasonUnknownType     Reason = "unknown_type"
	ReasonUnknownVersion  Reason = "unknown_version"
	ReasonSubjectMismatch Reason = "subject_mismatch"
)

// Reasons lists every reason that a DecodeError can have.
var Reasons = []Reason{
	ReasonTooLarge, ReasonSyntax, ReasonMissingField, ReasonInvalidField,
	ReasonUnknownType, ReasonUnknownVersion, ReasonSubjectMismatch,
}

// DecodeError says why an event is refused. Field is the path of the field at
// fault, such as "data.execution_id", and empty where the whole body is.
type DecodeError struct {
	Reason Reason
	Field  string
	Detail string
}

// Error is a sentence that names the field and the fault.
func (e *DecodeError) Error() string {
	if e.Field == "" {
		return "event refused: " + e.Detail
	}
	return "event refused: " + e.Field + " " + e.Detail
}

func missing(field string) *DecodeError {
	return &DecodeError{Reason: ReasonMissingField, Field: field, Detail: "is missing"}
}

func invalid(field, format string, args ...any) *DecodeError {
	return &DecodeError{Reason: ReasonInvalidField, Field: field, Detail: fmt.Sprintf(format, args...)}
}

func malformed(format string, args ...any) *DecodeError {
	return &DecodeError{Reason: ReasonSyntax, Detail: fmt.Sprintf(format, args...)}
}

// ErrServerTooOld is in the chain of CheckServer's error when the NATS server
// lacks fixes that Headroom's correctness rests on. Upgrading it is the remedy.
var ErrServerTooOld = errors.New("nats-server is too old")
