package guard

import (
	"errors"
	"fmt"
	"time"
)

// ErrNested means that count or act called Guard again: with the same key that would wait
// for itself, with another one two guards could wait for each other. Guard once, around both.
var ErrNested = errors.New("guard inside of a guard: call it once, around everything")

// ErrSwallowed means that a statement failed in the transaction and act returned nil
// nevertheless. Postgres has rolled the transaction back; nothing is stored.
var ErrSwallowed = errors.New("a statement failed in the guard's transaction and act did not return its error")

// ErrEnded means that count or act ended the guard's transaction, and with it the lock.
// The guard does that. What was committed so is stored, and was not protected to the end.
var ErrEnded = errors.New("count or act ended the guard's transaction")

// Scope says whose limit was measured.
type Scope string

// The scopes of a limit.
const (
	// ScopeOrganization is the pool that all of an organization draw on.
	ScopeOrganization Scope = "organization"
	// ScopeSubject is the part of Request.Subject.
	ScopeSubject Scope = "subject"
	// ScopeResource is the part of Request.Resource.
	ScopeResource Scope = "resource"
)

// EntitlementLimitExceeded means that there is no room for what was requested. Act was
// not called. Asking again is of no use before usage or plan change.
type EntitlementLimitExceeded struct {
	Organization, Privilege string
	// Scope is the limit that failed; Limit, Current and Remaining are of that one.
	Scope                     Scope
	Limit, Current, Requested int64
	// Remaining is what is left, 0 where more is used than allowed.
	Remaining int64
	PlanKey   string
	// ResetsAt is when a flow begins anew; nil where it never does by itself.
	ResetsAt *time.Time
	Details  Details
}

// Error says what was asked for and how much there is.
func (e *EntitlementLimitExceeded) Error() string {
	return fmt.Sprintf("%d of %s asked for; %d of the %d that plan %s allows per %s are used",
		e.Requested, e.Privilege, e.Current, e.Limit, e.PlanKey, e.Scope)
}

// NotEntitled means that the privilege exists and the plan does not grant it.
type NotEntitled struct {
	Organization, Privilege, PlanKey string
	// Cause is why, where the plan itself is what is missing; else nil.
	Cause error
}

// Error says what the plan lacks.
func (e *NotEntitled) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s is not granted %s: %v", e.Organization, e.Privilege, e.Cause)
	}
	return fmt.Sprintf("plan %s of %s does not grant %s", e.PlanKey, e.Organization, e.Privilege)
}

// Unwrap is the cause.
func (e *NotEntitled) Unwrap() error { return e.Cause }

// UnknownPrivilege means that nobody has defined the privilege: the program has a wrong
// name, or the catalog lacks one.
type UnknownPrivilege struct{ Privilege string }

// Error names it.
func (e *UnknownPrivilege) Error() string {
	return fmt.Sprintf("no plan knows privilege %s", e.Privilege)
}

// TypeMismatch means that the privilege is not a limit, so there is nothing to count.
type TypeMismatch struct {
	Privilege string
	Kind      Kind
}

// Error says what it is.
func (e *TypeMismatch) Error() string {
	return fmt.Sprintf("privilege %s is of kind %s, and only a %s can be guarded", e.Privilege, e.Kind, KindLimit)
}

// InvalidArgument means that the request itself is wrong; nothing was locked or asked.
type InvalidArgument struct {
	// Field is the request's field in lower case, and Detail what is wrong with it.
	Field, Detail string
}

// Error names the field and what is wrong.
func (e *InvalidArgument) Error() string { return e.Field + " " + e.Detail }

// InvalidUsage means that what count returned cannot be a usage, or lacks the part that
// the privilege has a cap for. Act was not called.
type InvalidUsage struct{ Field, Detail string }

// Error names the part and what is wrong.
func (e *InvalidUsage) Error() string { return "usage from count: " + e.Field + " " + e.Detail }

// ProviderUnavailable means that the limit could not be learned, and so act was not
// called: ask again.
type ProviderUnavailable struct {
	Organization, Privilege string
	Cause                   error
	// Outage is set where the provider could not be reached or was too slow, and not where
	// it answered with something else. Only then Options.Fallbacks are used.
	Outage bool
}

// Error says why.
func (e *ProviderUnavailable) Error() string {
	return fmt.Sprintf("limit of %s for %s cannot be learned: %v", e.Privilege, e.Organization, e.Cause)
}

// Unwrap is the cause.
func (e *ProviderUnavailable) Unwrap() error { return e.Cause }

// LockTimeout means that others held the lock for as long as the lock waits. Nothing was
// done: ask again.
type LockTimeout struct {
	Key    string
	Domain string
	Waited time.Duration
	// Cause is what the lock's service said, or that the wait was in this process.
	Cause error
}

// Error says how long.
func (e *LockTimeout) Error() string {
	return fmt.Sprintf("lock %s of %s was not free within %s", e.Key, e.Domain, e.Waited.Round(time.Millisecond))
}

// Unwrap is the cause.
func (e *LockTimeout) Unwrap() error { return e.Cause }

// LockUnavailable means that the lock could not be asked for. Nothing was done; a guard
// without its lock does not proceed.
type LockUnavailable struct {
	Key    string
	Domain string
	Cause  error
}

// Error says why.
func (e *LockUnavailable) Error() string {
	return fmt.Sprintf("lock %s of %s cannot be taken: %v", e.Key, e.Domain, e.Cause)
}

// Unwrap is the cause.
func (e *LockUnavailable) Unwrap() error { return e.Cause }

// OutcomeUnknown means that act succeeded and the answer to the commit was lost: what
// act did is stored, or it is not. Look before doing it again.
type OutcomeUnknown struct {
	Domain string
	Cause  error
}

// Error says why.
func (e *OutcomeUnknown) Error() string {
	return fmt.Sprintf("commit in %s was sent and its outcome is unknown: %v", e.Domain, e.Cause)
}

// Unwrap is the cause.
func (e *OutcomeUnknown) Unwrap() error { return e.Cause }
