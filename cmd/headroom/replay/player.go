package replay

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// Headroom is what a replay needs of a running Headroom. Each method returns
// when the event has had its effect, so that the next one meets a settled state.
type Headroom interface {
	// Request publishes the event and waits for the decision on it. Without a
	// decision in time the error wraps ErrNoDecision.
	Request(ctx context.Context, event schemas.Event[schemas.ExecutionRequested]) (schemas.DecisionMade, error)
	// Progress publishes the event, waits until it is applied, and returns the
	// runtime decision that it brought about, nil if none.
	Progress(ctx context.Context, event schemas.Event[schemas.ExecutionProgressed]) (*schemas.DecisionMade, error)
	// Complete publishes the event and waits until it is applied.
	Complete(ctx context.Context, event schemas.Event[schemas.ExecutionCompleted]) error
}

// Options is what a replay is played with.
type Options struct {
	Headroom Headroom
	Speed    Speed
	// Source begins the source of each event; a slash and the row's system follow.
	Source string
	// Decided is called with each decision as it arrives, in the order of the
	// trace's clock and never twice at once.
	Decided func(Decided)
}

// Decided is one decision of a replay.
type Decided struct {
	// At is when it happened on the trace's clock.
	At        time.Time
	Execution Execution
	Decision  schemas.DecisionMade
}

// Play asks for every execution of the trace at its time, lets the allowed
// ones run for their makespan, reports what they did, and ends them. One event
// is settled before the next is sent, so the same trace and the same plans
// always give the same decisions. It returns early when ctx ends, or with the
// first event that cannot be sent or stays without an answer.
func Play(ctx context.Context, trace Trace, options Options) error {
	p := player{Options: options, agenda: newAgenda(trace)}
	var clock time.Time
	for {
		next, more := p.agenda.next()
		if !more {
			return nil
		}
		if !clock.IsZero() {
			if err := pause(ctx, p.Speed.Pause(next.at.Sub(clock))); err != nil {
				return err
			}
		}
		clock = next.at
		if err := p.play(ctx, next); err != nil {
			return fmt.Errorf("replay %s:%d, execution %s of %s: %w",
				trace.Name, next.execution.Line, next.execution.ID, next.execution.Workspace, err)
		}
	}
}

type player struct {
	Options
	agenda *agenda
}

func (p *player) play(ctx context.Context, m moment) error {
	if m.end {
		return p.end(ctx, m.execution)
	}
	return p.start(ctx, m.execution)
}

func (p *player) start(ctx context.Context, e Execution) error {
	event := schemas.NewEvent(p.source(e), eventID(e, "requested"), e.At, schemas.ExecutionRequested{
		WorkspaceID: e.Workspace, ExecutionID: e.ID, PayloadBytes: &e.InputBytes,
	})
	decision, err := p.Headroom.Request(ctx, event)
	if err != nil {
		return fmt.Errorf("request it: %w", err)
	}
	p.Decided(Decided{At: e.At, Execution: e, Decision: decision})
	if decision.Allowed {
		p.agenda.started(e)
	}
	return nil
}

func (p *player) end(ctx context.Context, e Execution) error {
	progressed := schemas.NewEvent(p.source(e), eventID(e, "progressed"), e.End(), schemas.ExecutionProgressed{
		WorkspaceID: e.Workspace, ExecutionID: e.ID,
		Tasks: &e.Tasks, PayloadBytes: &e.OutputBytes, StartedAt: &e.At,
	})
	decision, err := p.Headroom.Progress(ctx, progressed)
	if err != nil {
		return fmt.Errorf("report its progress: %w", err)
	}
	outcome := schemas.OutcomeSucceeded
	if decision != nil {
		p.Decided(Decided{At: e.End(), Execution: e, Decision: *decision})
		if !decision.Allowed {
			outcome = schemas.OutcomeCanceled
		}
	}
	completed := schemas.NewEvent(p.source(e), eventID(e, "completed"), e.End(), schemas.ExecutionCompleted{
		WorkspaceID: e.Workspace, ExecutionID: e.ID, Outcome: outcome, Tasks: &e.Tasks,
	})
	if err := p.Headroom.Complete(ctx, completed); err != nil {
		return fmt.Errorf("complete it: %w", err)
	}
	return nil
}

// source tells the engine that ran the execution.
func (p *player) source(e Execution) string { return p.Source + "/" + e.System }

// eventID is unique among the events of a trace, and the same in every replay.
func eventID(e Execution, verb string) string {
	return "line-" + strconv.Itoa(e.Line) + "." + verb
}

func pause(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
