package usage

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/subscriptions"
)

// Plans tells what a workspace is on; *subscriptions.Cache is one.
type Plans interface {
	Lookup(ctx context.Context, workspace string, at time.Time) (subscriptions.PlanInfo, error)
	// Invalidate says that a reading of a lower revision is old; 0 drops any.
	Invalidate(workspace string, revision int64)
}

// Catalog tells every feature that some plan has, with its kind.
type Catalog interface {
	Features(ctx context.Context) (map[string]subscriptions.FeatureKind, error)
}

// Options are what Counters work with.
type Options struct {
	// Pool is Headroom's database. What takes a pgx.Tx uses that and never the pool.
	Pool *pgxpool.Pool
	// Plans may read from a pool. It must not be one whose every connection is held by a
	// transaction that asks for a change: the look-up would wait for that connection until
	// LookupTimeout.
	Plans Plans
	// Catalog tells a wrong name from a feature that the plan does not include; without
	// it PolicyViolation.Unknown is never set.
	Catalog Catalog
	// LookupTimeout bounds one look-up of a plan; DefaultLookupTimeout if 0.
	LookupTimeout time.Duration
	// Now is the clock by which periods begin and end, time.Now by default.
	Now func() time.Time
	// Log hears what nobody else is told; nil is silence.
	Log *slog.Logger
}

// DefaultLookupTimeout leaves the plan cache the time that it gives a load itself.
const DefaultLookupTimeout = 2 * time.Second

// Counters count what workspaces have of each feature. They are safe for concurrent use.
type Counters struct {
	options Options
	pool    *pgxpool.Pool
	queues  queues
}

// New makes Counters on a database that schemas.Migrate brought up to date. The pool
// stays the caller's to close, after the last call has returned.
func New(options Options) *Counters {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.LookupTimeout <= 0 {
		options.LookupTimeout = DefaultLookupTimeout
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	return &Counters{options: options, pool: options.Pool, queues: queues{open: make(map[queueKey]*queue)}}
}
