package stripetest

import (
	"fmt"
	"net/http"
)

// Error is what Stripe answers to a call that it refuses: an action of this package
// returns it, and the HTTP API renders it.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Type, Code, Param and Message are those of Stripe's error object.
	Type, Code, Param, Message string
}

// Error is the message with its code.
func (e *Error) Error() string {
	return fmt.Sprintf("stripe answers %d %s: %s", e.Status, orElse(e.Code, e.Type), e.Message)
}

const invalidRequest = "invalid_request_error"

func missing(object, id string) *Error {
	return &Error{
		Status: http.StatusNotFound, Type: invalidRequest, Code: "resource_missing", Param: "id",
		Message: fmt.Sprintf("No such %s: '%s'", object, id),
	}
}

func refused(param, message string) *Error {
	return &Error{Status: http.StatusBadRequest, Type: invalidRequest, Param: param, Message: message}
}

func declined() *Error {
	return &Error{
		Status: http.StatusPaymentRequired, Type: "card_error", Code: "card_declined",
		Message: "Your card was declined.",
	}
}
