package subscriptions

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
)

// The defaults of LifecycleOptions.
const (
	DefaultLifecycleWorkers = 2
	DefaultLifecycleGlance  = time.Second
)

// longestLifecyclePause bounds how late work begins after Postgres is back.
const longestLifecyclePause = 5 * time.Second

// LifecycleOptions are the settings of a Lifecycle; a zero field takes its default.
type LifecycleOptions struct {
	// Workers is how many workspaces are caught up at once.
	Workers int
	// Glance is how often the database is asked for what is due.
	Glance time.Duration
	// Log hears of what cannot be caught up; nil is silence.
	Log *slog.Logger
}

// Lifecycle carries out what time alone does to subscriptions, for workspaces that
// nobody asks for: periods and quotas that are over, trials, ends, graces, and
// Stripe's periods without news (Store.Overdue). Any number of processes may run one.
//
//	             once a second
//	subscriptions.due_at ──► the one due longest whose workspace nobody has locked
//	                           │ one transaction
//	                           ├─ catchUp: each due row once ─ which one counts ─ outbox
//	                           └─ fails: put off, longer each time, the others go on
//
// A workspace is locked from the moment it is found until the commit, so nobody
// does it twice. A process that is killed leaves what it had begun as it was before.
// However much time has passed, a subscription gets one row, for the period that runs.
type Lifecycle struct {
	store    *Store
	options  LifecycleOptions
	troubles *troubles
	// more wakes workers that rest, because there is more than one can do.
	more chan struct{}
}

// NewLifecycle makes a Lifecycle of a store. It does not talk to the database yet.
func NewLifecycle(store *Store, o LifecycleOptions) *Lifecycle {
	if o.Workers <= 0 {
		o.Workers = DefaultLifecycleWorkers
	}
	if o.Glance <= 0 {
		o.Glance = DefaultLifecycleGlance
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Lifecycle{
		store: store, options: o, more: make(chan struct{}, o.Workers),
		troubles: &troubles{log: o.Log, of: make(map[string]trouble)},
	}
}

// Run works until ctx ends, and then returns nil; what is not committed by then is
// left for another run. While Postgres is away it tries again with growing pauses.
func (l *Lifecycle) Run(ctx context.Context) error {
	var workers errgroup.Group
	workers.Go(func() error { return l.lead(ctx) })
	for range l.options.Workers - 1 {
		workers.Go(func() error { return l.assist(ctx) })
	}
	return workers.Wait()
}

// lead looks for what is due, and begins with whatever a new policy may concern.
func (l *Lifecycle) lead(ctx context.Context) error {
	for failures, reviewed := 0, false; ctx.Err() == nil; {
		err := l.review(ctx, &reviewed)
		if err == nil {
			err = l.drain(ctx)
		}
		pause := l.options.Glance
		switch {
		case ctx.Err() != nil:
		case err != nil:
			failures++
			pause = min(pause<<min(failures, 10), longestLifecyclePause)
			if failures == 1 {
				l.options.Log.WarnContext(ctx, "subscriptions wait for the database to be renewed", "error", err)
			}
		case failures > 0:
			failures = 0
			l.options.Log.InfoContext(ctx, "subscriptions are renewed again")
		}
		rest(ctx, pause)
	}
	return nil
}

// assist works whenever there is more than the leading worker can do. What it cannot
// do for a fault of the database the leading one finds, too.
func (l *Lifecycle) assist(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.more:
			_ = l.drain(ctx)
		}
	}
}

func (l *Lifecycle) review(ctx context.Context, reviewed *bool) error {
	if *reviewed {
		return nil
	}
	err := l.store.reviewGraces(ctx)
	*reviewed = err == nil
	return err
}

// drain catches up one workspace after the other until none is due. An error is one
// of the database; a workspace that cannot be caught up is put off.
func (l *Lifecycle) drain(ctx context.Context) error {
	for {
		workspace, err := l.store.catchUpNext(ctx)
		switch {
		case err == nil && workspace == "":
			return nil
		case err == nil:
			l.troubles.over(ctx, workspace)
		case workspace == "" || ctx.Err() != nil:
			return err
		default:
			again := l.troubles.add(ctx, workspace, err)
			if err := l.store.putOff(ctx, workspace, again); err != nil {
				return err
			}
		}
		select {
		case l.more <- struct{}{}:
		default: // they are at it
		}
	}
}

func rest(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
