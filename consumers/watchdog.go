package consumers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
)

// kindWatchdog is what a probe knows the watchdog by.
const kindWatchdog = "watchdog"

const (
	// watchdogGlance is how often the watchdog looks.
	watchdogGlance = time.Second
	// ledgerGlance is how often it asks whether the ledger has caught up.
	ledgerGlance = 250 * time.Millisecond
	// longestWatchdogPause bounds how late it looks after a service is back.
	longestWatchdogPause = 5 * time.Second
	// watchdogPatience bounds what is done while executions are locked.
	watchdogPatience = 5 * time.Second
	// watchdogLooks is how many batches are done before the ledger is asked again
	// whether it has caught up.
	watchdogLooks = 5
)

// WatchdogEvent is the request event that a decision of the watchdog names, with the
// source schemas.SourceHeadroom: there is none, and the decision's id is made of it, so
// that whoever takes it, and however often, it is one decision.
const WatchdogEvent = "watchdog"

// stander looks executions up in Redis; enforcement.Enforcer is one.
type stander interface {
	Standings(ctx context.Context, executions []enforcement.Execution) []enforcement.Standing
}

// WatchdogOptions makes a Watchdog. NATS, JetStream, Ledger and Leases are required; what
// is zero of the rest has the default of its comment.
type WatchdogOptions struct {
	// NATS is the connection that JetStream is on.
	NATS      *nats.Conn
	JetStream jetstream.JetStream
	Topology  schemas.Topology
	Ledger    *ledger.Store
	// Leases knows how executions stand in Redis.
	Leases stander
	// Grace is how long an engine that stops by itself has for telling so: 5 seconds.
	// Less than nothing is none.
	Grace time.Duration
	// BatchSize is how many executions are locked at once: 500.
	BatchSize int
	// Shadow has its decisions stored as allowed, see Options.Shadow.
	Shadow bool
	// Log is where to log: nowhere.
	Log *slog.Logger
}

// Watchdog tells engines to stop what has run for longer than its decision allows, for
// those that never ask, and finds leases that ended without a completion. Any number of
// processes may run one.
//
//	             once a second, if the ledger has caught up with the streams
//	executions ─ duration_due_at ─► 9004, kind runtime ─► headroom.decisions.<ws> ─► noted as told
//	           └ leased_until ────► Redis: does it run on? ─┬─► yes: leased_until moves
//	                                                        └─► no: noted as leaked
//
// A decision is stored once: its id is derived, so that the stream drops what another
// process, or one before a kill, has stored in the last hour; what is older the
// ledger knows. An execution of which the ledger knows a 9004 is not told again, and
// one whose completion was stored before the look began is not told at all. One that
// completes at that very moment may be; that stops nothing.
//
// A leak holds no slot: Redis gives it free when the lease ends, whoever looks. So
// nothing depends on the watchdog's finding it, but that somebody hears of it.
//
// Without NATS and without Postgres it waits; without Redis it tells, and finds no leaks.
type Watchdog struct {
	options WatchdogOptions
	probe   probe
	stats   WatchdogStats
}

// WatchdogStats counts what a Watchdog did since it was made. It is safe for concurrent
// use; the counts only rise.
type WatchdogStats struct{ told, leaked, extended atomic.Int64 }

// Told is how many executions were told to stop.
func (s *WatchdogStats) Told() int64 { return s.told.Load() }

// Leaked is how many leases were found to have ended without a completion.
func (s *WatchdogStats) Leaked() int64 { return s.leaked.Load() }

// Extended is how many leases were found to run on.
func (s *WatchdogStats) Extended() int64 { return s.extended.Load() }

// NewWatchdog checks the options. It does not talk to any server yet.
func NewWatchdog(o WatchdogOptions) (*Watchdog, error) {
	if o.NATS == nil || o.JetStream == nil || o.Ledger == nil || o.Leases == nil {
		return nil, errors.New("make watchdog: NATS, JetStream, Ledger and Leases are required")
	}
	if o.Grace == 0 {
		o.Grace = 5 * time.Second
	}
	o.Grace = max(o.Grace, 0)
	o.BatchSize = positive(o.BatchSize, 500)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Watchdog{options: o, probe: unwatched{}}, nil
}

// Stats are the watchdog's counts, live.
func (w *Watchdog) Stats() *WatchdogStats { return &w.stats }

// Run looks until ctx ends, and then returns nil as soon as what the stream has
// acknowledged is noted. While a service is away it tries again with growing pauses. The
// streams must exist (schemas.Topology.Ensure). An error is one of the beginning.
func (w *Watchdog) Run(ctx context.Context) error {
	o := w.options
	p, err := schemas.NewPublisher(o.JetStream, schemas.PublisherOptions{})
	if err != nil {
		return fmt.Errorf("run watchdog: %w", err)
	}
	defer p.Close()
	decisions, err := o.JetStream.Stream(ctx, o.Topology.Stream(schemas.StreamDecisions))
	if err != nil {
		return fmt.Errorf("run watchdog: open the decisions stream: %w", err)
	}
	watch := &watching{Watchdog: w, behind: w.behind(), writer: schemas.NewDecisionWriter(schemas.DecisionWriterOptions{
		Store: probed{publisher: p, kind: kindWatchdog, probe: w.probe}, Stored: decisions, Topology: o.Topology, Shadow: o.Shadow,
	})}
	for ctx.Err() == nil {
		wait(ctx, watch.round(ctx))
	}
	return nil
}

// watching is a running Watchdog.
type watching struct {
	*Watchdog
	behind *behind
	writer *schemas.DecisionWriter

	failures, blind trouble
}

// round looks once, and says how long to rest. Work that is under way when ctx ends is
// finished, so that what was stored is noted.
func (w *watching) round(ctx context.Context) time.Duration {
	current, err := w.behind.caughtUp(ctx)
	if err != nil {
		return w.failures.pause(ctx, w.options.Log, err)
	}
	if !current {
		w.options.Log.DebugContext(ctx, "the watchdog waits for the ledger")
		return ledgerGlance
	}
	work := context.WithoutCancel(ctx)
	more, err := w.looks(ctx, func() (bool, error) { return w.stopOverdue(work) })
	pause := w.failures.pause(ctx, w.options.Log, err)
	if err != nil {
		return pause
	}
	if w.blind.rests() {
		return pause
	}
	moreLeases, err := w.looks(ctx, func() (bool, error) { return w.findLeaks(work) })
	blind := w.blind.pause(ctx, w.options.Log, err)
	w.blind.rest(err, blind)
	if more || moreLeases {
		return 0
	}
	return pause
}

// looks does batch after batch while there is more, a few at most.
func (w *watching) looks(ctx context.Context, look func() (more bool, err error)) (more bool, err error) {
	for range watchdogLooks {
		if more, err = look(); err != nil || !more || ctx.Err() != nil {
			return more, err
		}
	}
	return more, nil
}

// stopOverdue tells a batch of executions that ran too long.
func (w *watching) stopOverdue(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*watchdogPatience)
	defer cancel()
	var fault error
	told, err := w.options.Ledger.TellOverdue(ctx, ledger.Sweep{Grace: w.options.Grace, Limit: w.options.BatchSize},
		func(ctx context.Context, all []ledger.Overdue) (done []bool) {
			done, fault = w.publish(ctx, all)
			return done
		})
	w.probe.at(kindWatchdog, "noted")
	if told.Published > 0 {
		w.stats.told.Add(int64(told.Published))
		w.options.Log.InfoContext(ctx, "executions that ran too long are told to stop", "executions", told.Published)
	}
	return told.More, errors.Join(err, fault)
}

// publish stores the decisions, and reports for which executions there is nothing
// more to do: one whose decision can never be stored is given up.
func (w *watching) publish(ctx context.Context, all []ledger.Overdue) (done []bool, fault error) {
	ctx, cancel := context.WithTimeout(ctx, watchdogPatience)
	defer cancel()
	done = make([]bool, len(all))
	var out []schemas.OutgoingDecision
	var indexes []int
	for i, each := range all {
		if d := overrun(each); d != nil {
			out, indexes = append(out, schemas.OutgoingDecision{Decision: *d}), append(indexes, i)
		}
	}
	for j, written := range w.writer.Write(ctx, out) {
		var unwritable *schemas.DecodeError
		switch d := out[j].Decision; {
		case written.Err == nil:
			done[indexes[j]] = true
		case errors.As(written.Err, &unwritable):
			done[indexes[j]] = true
			w.options.Log.ErrorContext(ctx, "an execution cannot be told to stop", "workspace", d.WorkspaceID,
				"execution", d.ExecutionID, "error", written.Err)
		default:
			fault = written.Err
		}
	}
	return done, fault
}

// overrun is the decision that an execution ran too long, nil while it did not.
func overrun(o ledger.Overdue) *schemas.DecisionMade {
	return enforcement.CheckRunning(o.Admission, enforcement.Progress{
		WorkspaceID: o.Admission.WorkspaceID, ExecutionID: o.Admission.ExecutionID,
		EventID: WatchdogEvent, EventSource: schemas.SourceHeadroom,
	}, o.Now)
}

// findLeaks looks up a batch of leases that should be over.
func (w *watching) findLeaks(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*watchdogPatience)
	defer cancel()
	lapsed, err := w.options.Ledger.CheckLeases(ctx, ledger.Sweep{Grace: w.options.Grace, Limit: w.options.BatchSize}, w.standings)
	if err != nil {
		return false, err
	}
	w.stats.leaked.Add(int64(len(lapsed.Leaked)))
	w.stats.extended.Add(int64(lapsed.Extended))
	if n := len(lapsed.Leaked); n > 0 {
		names, others := someWorkspaces(lapsed.Leaked)
		w.options.Log.WarnContext(ctx, "leases ended without a completion", "leases", n, "workspaces", names, "other_workspaces", others)
	}
	return lapsed.More, nil
}

func (w *watching) standings(ctx context.Context, leases []ledger.Lease) []ledger.Found {
	ctx, cancel := context.WithTimeout(ctx, watchdogPatience)
	defer cancel()
	executions := make([]enforcement.Execution, len(leases))
	for i, l := range leases {
		executions[i] = enforcement.Execution{WorkspaceID: l.WorkspaceID, ExecutionID: l.ExecutionID}
	}
	found := make([]ledger.Found, len(leases))
	for i, s := range w.options.Leases.Standings(ctx, executions) {
		found[i] = ledger.Found{Live: s.Live, Until: s.LeaseExpiresAt, Err: s.Err}
	}
	return found
}

// namedWorkspaces is how many workspaces a line of the log names.
const namedWorkspaces = 20

// someWorkspaces names the workspaces of leases, and counts those beyond namedWorkspaces.
func someWorkspaces(leases []ledger.Lease) (names []string, others int) {
	for _, l := range leases {
		names = append(names, l.WorkspaceID)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	named := min(len(names), namedWorkspaces)
	return names[:named], len(names) - named
}
