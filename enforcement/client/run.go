package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
)

// Run is an execution that may start. Its checks hold it against the limits that
// it was admitted with, in this process: they need no server and cost microseconds.
// Once one of them, or Headroom itself, has said no, all of them do. It is safe for
// concurrent use. End it with Complete, whatever becomes of it.
type Run struct {
	client   *Client
	decision *schemas.DecisionMade
	started  time.Time

	mu        sync.Mutex
	tasks     int64
	payload   int64
	stopped   *Denied
	completed bool
	watch     *watch
}

// RunOf is the Run of an admission that was read from the stream: the *Denied as an
// error if it denies, one that wraps ErrOver if the execution is over already. The
// execution counts as started when it was decided.
func (c *Client) RunOf(admission schemas.DecisionMade) (*Run, error) {
	if admission.Kind != schemas.KindAdmission {
		return nil, fmt.Errorf("run execution %s: the decision is no admission but %s", admission.ExecutionID, admission.Kind)
	}
	if !admission.Allowed {
		return nil, newDenied(&admission)
	}
	return c.runOf(&admission, earlier(c.now(), admission.DecidedAt))
}

// runOf begins at the time told, or where an answer is repeated when it was first given.
func (c *Client) runOf(d *schemas.DecisionMade, started time.Time) (*Run, error) {
	if d.LeaseExpiresAt == nil && d.Code == 0 {
		return nil, fmt.Errorf("run execution %s of workspace %s: %w", d.ExecutionID, d.WorkspaceID, ErrOver)
	}
	if d.Replayed {
		started = earlier(started, d.DecidedAt)
	}
	return &Run{client: c, decision: d, started: started}, nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Decision is the admission, with the plan, the period and all limits.
func (r *Run) Decision() schemas.DecisionMade { return *r.decision }

// Tasks notes how many tasks the execution has had so far, the one about to begin
// included. The error is nil, or the *Denied for which the execution must stop.
func (r *Run) Tasks(soFar int64) error {
	r.mu.Lock()
	r.tasks = max(r.tasks, soFar)
	r.mu.Unlock()
	return r.Elapsed(r.client.now())
}

// Payload notes the size of a payload in bytes. The error is nil, or the *Denied
// for which the execution must stop.
func (r *Run) Payload(bytes int64) error {
	r.mu.Lock()
	r.payload = max(r.payload, bytes)
	r.mu.Unlock()
	return r.Elapsed(r.client.now())
}

// Elapsed looks how long the execution has run at the given time. The error is nil,
// or the *Denied for which the execution must stop.
func (r *Run) Elapsed(now time.Time) error {
	if denied := r.check(now); denied != nil {
		return denied
	}
	return nil
}

// Deadline is the last instant at which the execution may still run; bounded is
// false where its plan knows none.
func (r *Run) Deadline() (at time.Time, bounded bool) {
	minutes, bounded := r.decision.Limits.MaxExecutionDurationMinutes.Value()
	if !bounded || r.decision.Shadow {
		return time.Time{}, false
	}
	const longest = int64(100 * 365 * 24 * time.Hour / time.Minute)
	return r.started.Add(time.Duration(min(minutes, longest)) * time.Minute), true
}

// check holds all that is known against the limits. What Headroom decides in
// shadow stops nothing, and so does what is worked out here.
func (r *Run) check(now time.Time) *Denied {
	r.mu.Lock()
	stopped, progress := r.stopped, r.progress(now)
	r.mu.Unlock()
	if stopped != nil || r.decision.Shadow {
		return stopped
	}
	if d := enforcement.CheckRunning(*r.decision, progress, now); d != nil {
		r.stop(newDenied(d))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// progress is what is known so far; r.mu is held. The event that stands for it is
// the one that asked.
func (r *Run) progress(now time.Time) enforcement.Progress {
	p := enforcement.Progress{
		WorkspaceID: r.decision.WorkspaceID, ExecutionID: r.decision.ExecutionID,
		EventID: r.decision.RequestEventID, EventSource: r.decision.RequestEventSource,
		StartedAt: r.started, At: now,
	}
	if r.tasks > 0 {
		tasks := r.tasks
		p.Tasks = &tasks
	}
	if r.payload > 0 {
		payload := r.payload
		p.PayloadBytes = &payload
	}
	return p
}

// stop says no from now on; the first reason is kept.
func (r *Run) stop(denied *Denied) {
	r.mu.Lock()
	if r.stopped == nil {
		r.stopped = denied
	}
	stopped, w := r.stopped, r.watch
	r.mu.Unlock()
	if w != nil {
		w.cancel(stopped)
	}
}

// Progress tells Headroom how far the execution is, which moves its lease on, and
// returns when the event is stored. The error is nil, the *Denied for which the
// execution must stop, or why the event could not be stored before ctx ended. A Run
// with a Context does it by itself, as often as the lease needs.
func (r *Run) Progress(ctx context.Context) error {
	m, err := r.progressed()
	if err != nil {
		return fmt.Errorf("report progress: %w", err)
	}
	if err := r.client.store(ctx, m); err != nil {
		return fmt.Errorf("report progress of execution %s: %w", r.decision.ExecutionID, err)
	}
	return r.Elapsed(r.client.now())
}

// Complete frees the execution's slot and returns when that is stored: the event is
// sent until then, or until ctx ends, so give it a context that outlives the
// execution's own. A second call does nothing once one has succeeded.
func (r *Run) Complete(ctx context.Context, outcome schemas.Outcome) error {
	r.mu.Lock()
	over, tasks, w := r.completed, r.tasks, r.watch
	r.mu.Unlock()
	if over {
		return nil
	}
	if w != nil {
		w.cancel(context.Canceled)
	}
	err := r.client.Complete(ctx, Completion{
		WorkspaceID: r.decision.WorkspaceID, ExecutionID: r.decision.ExecutionID, Outcome: outcome, Tasks: tasks,
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.completed = true
	return nil
}
