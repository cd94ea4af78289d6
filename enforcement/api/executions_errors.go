package api

import (
	"errors"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

var (
	// ErrBusy means that so many callers wait already that another one is not let in. It
	// comes at once, and beside enforcement.ErrUnavailable.
	ErrBusy = errors.New("too many callers wait for an answer")
	// ErrRecorded means that a completion is in the executions stream and Redis could not
	// be told at once: the slot is freed as soon as the consumers can. It comes beside
	// enforcement.ErrUnavailable, and asking again is harmless.
	ErrRecorded = errors.New("the completion is recorded and will be applied")

	errDraining = errors.New("this instance is shutting down, ask another one")
	errPanicked = errors.New("answering panicked")
	errLate     = errors.New("the answer took longer than the rebuild fence allows")
	errPatience = errors.New("no answer in the time that a caller waits")
	errDeadline = errors.New("the request's own deadline has passed")
)

// isFinal reports an error that asking again does not mend: the caller's own, or what
// the database says of a workspace for which no service is away.
func isFinal(err error) bool {
	var fault *schemas.DecodeError
	return errors.As(err, &fault) || errors.Is(err, errDraining) ||
		errors.Is(err, subscriptions.ErrNotEntitled) || errors.Is(err, subscriptions.ErrNoDefaultPlan)
}
