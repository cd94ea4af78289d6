package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/schemas"
)

const (
	// headerReply asks Headroom to send the decision to an inbox as well.
	headerReply = "Headroom-Reply"
	// longestAskAgain is what the pause between two questions grows to.
	longestAskAgain = 10 * time.Second
	// shortestAskAgain is the pause over a connection that comes and goes.
	shortestAskAgain = 250 * time.Millisecond
	// answersKept is how many answers to one call may wait to be looked at.
	answersKept = 4
)

// Admit asks whether an execution may start and waits for the answer: a Run, or an
// error and the execution must not start. The error is a *Denied when Headroom said
// no; it wraps ErrOver when the execution is over already; and it wraps ErrUndecided
// when no answer came before ctx or Options.Timeout ended.
//
// A question whose answer may be lost is asked again, as a new event: an execution
// that was allowed is allowed for every event that names it, and charged once. Any
// answer to any of them counts, and an allow before a denial.
func (c *Client) Admit(ctx context.Context, e Execution) (*Run, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	a := &asking{client: c, execution: e, answers: make(chan *schemas.DecisionMade, answersKept), begun: c.now()}
	decision, err := a.wait(ctx)
	c.inbox.forget(a.events...)
	if e.Once && a.open > 0 && decision == nil {
		c.returns.add(ctx, c, e)
	}
	if err != nil {
		return nil, fmt.Errorf("admit: %w", err)
	}
	return c.runOf(decision, c.now())
}

// asking is one call of Admit.
type asking struct {
	client    *Client
	execution Execution
	begun     time.Time
	answers   chan *schemas.DecisionMade

	// asked is when the last question was sent.
	asked time.Time
	// events are all that asked, open is how many of them have no answer yet.
	events []string
	open   int
	// unstored tells when the event that was sent last could not be stored, and
	// fault is why one could not be.
	unstored <-chan error
	fault    error
	denied   *schemas.DecisionMade
}

// wait returns a decision that allows, or why there is none.
func (a *asking) wait(ctx context.Context) (*schemas.DecisionMade, error) {
	back := a.client.link.back()
	pause := a.client.askAgain
	timer := time.NewTimer(pause)
	defer timer.Stop()
	if err := a.ask(); err != nil {
		return nil, err
	}
	for {
		select {
		case d := <-a.answers:
			a.open--
			if d.Allowed {
				return d, nil
			}
			a.denied = d
			if a.open <= 0 {
				return nil, newDenied(d)
			}
			// Whoever was asked before and after is likely to answer at once.
			timer.Reset(a.client.askAgain)
		case err := <-a.unstored:
			if err := a.failed(err); err != nil {
				return nil, err
			}
		case <-timer.C:
			if a.denied != nil {
				return nil, newDenied(a.denied)
			}
			pause = min(2*pause, longestAskAgain)
			timer.Reset(pause)
			if err := a.ask(); err != nil {
				return nil, err
			}
		case <-back:
			// Answers of the meantime went to nobody.
			back, pause = a.client.link.back(), a.client.askAgain/2
			timer.Reset(a.soon())
		case <-ctx.Done():
			return nil, a.undecided(ctx)
		case <-a.client.done:
			return nil, ErrClosed
		}
	}
}

// soon is when to ask again over a connection that is back: at once, unless the last
// time was a moment ago, because a connection that comes and goes would else make
// every call ask each time.
func (a *asking) soon() time.Duration {
	return max(min(a.client.askAgain, shortestAskAgain)-time.Since(a.asked), 0)
}

// ask publishes one more event. Its error is one that asking again won't mend.
func (a *asking) ask() error {
	a.asked = time.Now()
	event := newID()
	m, err := a.client.requested(a.execution, event)
	if err != nil {
		return err
	}
	m.Header.Set(headerReply, a.client.inbox.expect(event, a))
	future, err := a.client.send(m)
	if err != nil {
		a.client.inbox.forget(event)
		if a.fault = err; final(err) {
			return fmt.Errorf("request execution %s: %w", a.execution.ID, err)
		}
		return nil
	}
	a.events, a.open = append(a.events, event), a.open+1
	a.unstored = future.Err()
	return nil
}

// failed takes note of an event that was not stored, or is not known to be.
func (a *asking) failed(err error) error {
	a.unstored, a.fault = nil, err
	if refused(err) {
		a.open--
	}
	if final(err) {
		return fmt.Errorf("request execution %s: %w", a.execution.ID, err)
	}
	return nil
}

// undecided says what is known of why no answer came.
func (a *asking) undecided(ctx context.Context) error {
	if a.denied != nil {
		return newDenied(a.denied)
	}
	why := context.Cause(ctx)
	if a.fault != nil {
		why = errors.Join(why, a.fault)
	}
	if last := a.client.nats.LastError(); errors.Is(last, nats.ErrPermissionViolation) {
		why = errors.Join(why, last)
	}
	return fmt.Errorf("execution %s of workspace %s, asked %d times in %s: %w: %w", a.execution.ID, a.execution.WorkspaceID,
		len(a.events), a.client.now().Sub(a.begun).Round(time.Millisecond), ErrUndecided, why)
}
