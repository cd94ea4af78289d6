package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
)

var (
	// ErrUndecided means that no decision came in time, so the execution must not
	// start. Ask again for the same execution: if it was allowed unheard, that
	// answer is repeated. See Execution.Once for an engine that will not.
	ErrUndecided = errors.New("no decision in time, the execution must not start")
	// ErrOver means that the execution is over already: it was completed, or given
	// back, before it was asked for. It holds no slot and never will; ask for a new
	// execution id instead.
	ErrOver = errors.New("the execution is over already, its id can't start again")
	// ErrClosed means that the Client was closed.
	ErrClosed = errors.New("the client is closed")
)

// Denied is Headroom's no: the execution must not start, or must stop.
type Denied struct {
	// Code is 9001 to 9008 and Name what it is called.
	Code int
	Name string
	// Message is a sentence for a person.
	Message string
	// Limit names the limit that decided; empty for 9008.
	Limit string
	// ResetsAt is when the period ends and its quota is fresh; zero if unknown.
	ResetsAt time.Time
	// RetryAfter is when asking again may help; 0 if Headroom can't tell.
	RetryAfter time.Duration
	// Decision is all that Headroom said.
	Decision schemas.DecisionMade
}

func newDenied(d *schemas.DecisionMade) *Denied {
	denied := &Denied{Code: d.Code, Name: d.Error, Message: d.Message, Limit: d.Limit, Decision: *d}
	if d.ResetsAt != nil {
		denied.ResetsAt = *d.ResetsAt
	}
	if d.RetryAfterMS != nil {
		denied.RetryAfter = time.Duration(*d.RetryAfterMS) * time.Millisecond
	}
	return denied
}

// Error is the code, its name and the sentence.
func (d *Denied) Error() string {
	verb := "denied"
	if d.Decision.Kind == schemas.KindRuntime {
		verb = "stopped"
	}
	return fmt.Sprintf("execution %s of workspace %s %s with %d %s: %s",
		d.Decision.ExecutionID, d.Decision.WorkspaceID, verb, d.Code, d.Name, d.Message)
}

// Temporary reports whether the same execution may be allowed when it is asked
// for later, on the same plan: not when it is too large itself.
func (d *Denied) Temporary() bool {
	switch d.Code {
	case enforcement.CodeTasks, enforcement.CodeDuration, enforcement.CodePayload:
		return false
	default:
		return true
	}
}
