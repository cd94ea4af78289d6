package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
)

// Enforcer decides; enforcement.Enforcer is one.
type Enforcer interface {
	admitter
	runner
}

// admitter decides whether executions may start.
type admitter interface {
	Admit(ctx context.Context, requests []enforcement.Request) []enforcement.Result
	Withdraw(ctx context.Context, requests []enforcement.Request) []enforcement.Result
}

// runner follows executions that run until they are over.
type runner interface {
	Extend(ctx context.Context, progress []enforcement.Progress) []enforcement.Extension
	Release(ctx context.Context, completions []enforcement.Completion) []enforcement.Release
}

// decisionWriter stores decisions; schemas.DecisionWriter is one.
type decisionWriter interface {
	Write(ctx context.Context, decisions []schemas.OutgoingDecision) []schemas.WrittenDecision
}

// ExecutionsOptions makes Executions. Enforcer, Decisions and Events are required; what
// is zero of the rest has the default of its comment.
type ExecutionsOptions struct {
	Enforcer Enforcer
	// Decisions is where decisions are stored, and Events the execution.completed events.
	Decisions decisionWriter
	Events    schemas.MessageStore
	Topology  schemas.Topology
	// Patience is how long a caller waits while no answer can be given: 5 seconds.
	Patience time.Duration
	// RebuildFence is how long after it was asked for a decision may still be published:
	// 2 seconds.
	RebuildFence time.Duration
	// Flights is how many batches of one kind may be under way at once: 4.
	Flights int
	// BatchSize is the most questions of one batch: 512.
	BatchSize int
	// MaxWaiting is how many callers of one kind may wait at once: 10,000.
	MaxWaiting int
	// Now is the clock: time.Now.
	Now func() time.Time
	// Log is where to log: nowhere.
	Log *slog.Logger
}

func (o ExecutionsOptions) withDefaults() ExecutionsOptions {
	o.Patience = positive(o.Patience, 5*time.Second)
	o.RebuildFence = positive(o.RebuildFence, 2*time.Second)
	o.Flights = positive(o.Flights, 4)
	o.BatchSize = positive(o.BatchSize, 512)
	o.MaxWaiting = positive(o.MaxWaiting, 10_000)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func positive[N int | time.Duration](n, otherwise N) N {
	if n > 0 {
		return n
	}
	return otherwise
}

// Executions admits executions, follows them and ends them, for callers who wait for the
// answer. It is safe for concurrent use: what is asked at one moment goes to Redis and
// to the stream as one batch. Make one per process with NewExecutions; it answers from
// then on and until Run ends.
//
//	Admit ────► wait ─► batch ─► Enforcer.Admit ──► decisions stream ─► answer
//	Progress ─► wait ─► batch ─► Enforcer.Extend ─► (denials) ────────► answer
//	Complete ─► wait ─► batch ─► executions stream ─► Enforcer.Release ─► answer
//
// While Redis, Postgres or NATS is away a question is asked again, for as long as the
// caller has patience. Whoever is left without an answer may ask again with the same
// execution: what was allowed unheard is allowed again and charged once. If nobody asks
// again, an allow that nobody heard of holds its slot until its lease ends.
type Executions struct {
	options ExecutionsOptions
	stats   *ExecutionsStats

	admissions  door[admission, schemas.DecisionMade]
	progresses  door[progress, enforcement.Extension]
	completions door[*completion, enforcement.Release]
}

// NewExecutions makes Executions, which answer at once. It talks to no server by itself.
func NewExecutions(o ExecutionsOptions) *Executions {
	o = o.withDefaults()
	e := &Executions{options: o, stats: &ExecutionsStats{}}
	e.admissions.coalescer = newCoalescer(o, e.decide)
	e.progresses.coalescer = newCoalescer(o, e.extend)
	e.completions.coalescer = newCoalescer(o, e.complete)
	return e
}

// Stats are the counts, live.
func (e *Executions) Stats() *ExecutionsStats { return e.stats }

// Run waits for the end of ctx. Then it lets nobody in any more, answers those who were
// let in, which takes a few seconds at the longest, and returns nil.
func (e *Executions) Run(ctx context.Context) error {
	<-ctx.Done()
	e.admissions.coalescer.close()
	e.progresses.coalescer.close()
	e.completions.coalescer.close()
	return nil
}

// door is where callers of one kind wait.
type door[Q, A any] struct {
	coalescer *coalescer[Q, A]
	inside    atomic.Int64
}

// The pause before a question is asked again doubles from the first to the longest.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

// answer asks until there is an answer, an error that asking again does not mend, or the
// end of ctx. Any other error wraps enforcement.ErrUnavailable.
func answer[Q, A any](ctx context.Context, e *Executions, d *door[Q, A], question Q) (A, error) {
	started := e.options.Now()
	defer func() { e.stats.waited.Add(int64(e.options.Now().Sub(started))) }()
	if d.inside.Add(1) > int64(e.options.MaxWaiting) {
		d.inside.Add(-1)
		e.stats.busy.Add(1)
		var none A
		return none, e.unavailable(ErrBusy, nil)
	}
	defer d.inside.Add(-1)
	var fault error
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		got, err := d.coalescer.ask(ctx, question)
		switch {
		case err == nil:
			return got, nil
		case isFinal(err):
			return got, e.final(err)
		case ctx.Err() == nil:
			fault = err
			rest(ctx, max(pause, rebuilding(err)))
		}
		if ctx.Err() != nil {
			return got, e.unavailable(context.Cause(ctx), fault)
		}
	}
}

// rebuilding is how long the workspace's rebuild still takes, 0 if that is not the cause.
func rebuilding(err error) time.Duration {
	if r, is := errors.AsType[*enforcement.Rebuilding](err); is {
		return r.After
	}
	return 0
}

// rest lets a pause pass, or less if ctx ends before.
func rest(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// unavailable is the error of a caller who is left without an answer: why the waiting
// ended, and what kept the answer from being given.
func (e *Executions) unavailable(why, fault error) error {
	e.stats.unavailable.Add(1)
	if fault == nil {
		return fmt.Errorf("%w: %w", enforcement.ErrUnavailable, why)
	}
	return fmt.Errorf("%w: %w: %w", enforcement.ErrUnavailable, why, fault)
}

// final is an error that asking again here does not mend.
func (e *Executions) final(err error) error {
	if errors.Is(err, errDraining) {
		return e.unavailable(err, nil)
	}
	return err
}

// patient bounds how long a caller waits. A deadline of zero is none.
func (e *Executions) patient(ctx context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	patience, cause := e.options.Patience, errPatience
	if !deadline.IsZero() {
		if left := deadline.Sub(e.options.Now()); left < patience {
			patience, cause = left, errDeadline
		}
	}
	return context.WithTimeoutCause(ctx, patience, cause)
}

// flight bounds one flight, and counts it.
func (e *Executions) flight(questions int) (context.Context, context.CancelFunc) {
	e.stats.batches.Add(1)
	e.stats.batched.Add(int64(questions))
	return context.WithTimeout(context.Background(), e.options.RebuildFence)
}
