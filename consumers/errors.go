package consumers

import (
	"errors"
	"fmt"
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// What a handler returns for a message says what becomes of it; settle.go alone
// does it.
//
//	nil            acknowledged
//	*Defer         delivered again after its Delay, as often as it takes
//	*Dead          copied to the dead letters, never delivered again
//	anything else  delivered again with growing delay; after Options.MaxAttempts
//	               a dead letter with the error as its reason

// Defer asks for a message to be delivered again, without blaming it: something
// that it needs is away.
type Defer struct {
	Reason string
	// Delay is how long to wait; 0 lets it grow with the deliveries.
	Delay time.Duration
	Err   error
}

// Error names the reason and what caused it.
func (d *Defer) Error() string {
	if d.Err == nil {
		return "deferred: " + d.Reason
	}
	return fmt.Sprintf("deferred: %s: %v", d.Reason, d.Err)
}

// Unwrap is what caused the deferral.
func (d *Defer) Unwrap() error { return d.Err }

// Dead says that a message can never be handled.
type Dead struct {
	// Reason stands in the dead letter's Headroom-Reason.
	Reason string
}

// Error names the reason.
func (d *Dead) Error() string { return "dead: " + d.Reason }

// refusedBody is the verdict on a body that could not be decoded: its reason
// leads with the class of the fault.
func refusedBody(err error) *Dead {
	var fault *schemas.DecodeError
	if errors.As(err, &fault) {
		return &Dead{Reason: string(fault.Reason) + ": " + fault.Error()}
	}
	return &Dead{Reason: err.Error()}
}

// panicked is a handler's panic as an error.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("handler panicked: %v", p.value) }
