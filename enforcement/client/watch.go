package client

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/schemas"
)

const (
	// keepAlives is how often progress is reported in the length of a lease: one may
	// be lost, and the next one too.
	keepAlives = 3
	// shortestKeepAlive keeps a lease of no length from flooding the stream.
	shortestKeepAlive = 50 * time.Millisecond
)

// Context is the context for the execution's work. It ends with parent, with stop,
// with Complete, and as soon as the execution must stop: context.Cause is then the
// *Denied, be it that a check said no, that the plan's longest duration is over, or
// that Headroom said so. Until it ends the lease is kept alive, with a timer and no
// goroutine. Call stop when the work is done. A Run has one such context at a time;
// a second call ends the first one's.
func (r *Run) Context(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	w := &watch{run: r, end: cancel}
	r.mu.Lock()
	before, stopped := r.watch, r.stopped
	r.watch = w
	r.mu.Unlock()
	if before != nil {
		before.cancel(context.Canceled)
	}
	if stopped != nil {
		w.cancel(stopped)
		return ctx, func() {}
	}
	w.begin()
	context.AfterFunc(ctx, func() { w.cancel(context.Canceled) })
	return ctx, func() { w.cancel(context.Canceled) }
}

// watch is the time in which an execution is worked on.
type watch struct {
	run *Run
	end context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer
	over  bool
	// next is when progress is due.
	next time.Time
}

// begin starts the timer and listens for Headroom's no. How much of a repeated
// answer's lease is left nobody knows, so it is moved on at once.
func (w *watch) begin() {
	c := w.run.client
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	c.stops.add(w)
	w.next = c.now()
	if !w.run.decision.Replayed {
		w.next = w.next.Add(w.interval())
	}
	w.timer = time.AfterFunc(w.pause(), w.tick)
}

// interval is the pause between two reports, by Redis's clock on both ends.
func (w *watch) interval() time.Duration {
	d := w.run.decision
	if d.LeaseExpiresAt == nil { // in shadow there may be none to keep alive
		return 24 * time.Hour
	}
	return max(d.LeaseExpiresAt.Sub(d.DecidedAt)/keepAlives, shortestKeepAlive)
}

// pause is how long until there is something to do; w.mu is held.
func (w *watch) pause() time.Duration {
	until := w.next
	if deadline, bounded := w.run.Deadline(); bounded {
		until = earlier(until, deadline)
	}
	return max(until.Sub(w.run.client.now()), 0)
}

// tick stops an execution whose time is over, and else reports progress if it is due.
func (w *watch) tick() {
	c := w.run.client
	select {
	case <-c.done:
		return
	default:
	}
	now := c.now()
	if deadline, bounded := w.run.Deadline(); bounded && !now.Before(deadline) {
		// The limit itself is still allowed.
		now = now.Add(1)
	}
	if w.run.check(now) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	if !now.Before(w.next) {
		w.next = now.Add(w.interval())
		w.report()
	}
	w.timer.Reset(w.pause())
}

// report sends progress and does not wait: the next report makes up for a lost one.
func (w *watch) report() {
	c, d := w.run.client, w.run.decision
	m, err := w.run.progressed()
	if err == nil {
		_, err = c.send(m)
	}
	if err != nil {
		c.log.Warn("progress not reported, it will be again", "workspace", d.WorkspaceID, "execution", d.ExecutionID, "error", err)
	}
}

// cancel ends the work; the first cause is kept.
func (w *watch) cancel(cause error) {
	w.mu.Lock()
	was := w.over
	w.over = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	if was {
		return
	}
	w.run.client.stops.remove(w)
	w.end(cause)
}

// progressed is the event that tells how far an execution is.
func (r *Run) progressed() (*nats.Msg, error) {
	r.mu.Lock()
	now := r.client.now()
	p := r.progress(now)
	r.mu.Unlock()
	started := p.StartedAt.UTC()
	data := schemas.ExecutionProgressed{
		WorkspaceID: p.WorkspaceID, ExecutionID: p.ExecutionID, Tasks: p.Tasks, PayloadBytes: p.PayloadBytes, StartedAt: &started,
	}
	return message(r.client.topology.Progressed(p.WorkspaceID), schemas.NewEvent(r.client.source, newID(), now, data))
}
