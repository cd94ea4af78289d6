package subscriptions

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// StoreOptions are the policies of a Store.
type StoreOptions struct {
	// DenyUnknown refuses a workspace that the database has never seen with
	// ErrNotEntitled instead of putting it on the default plan.
	DenyUnknown bool
	// Policy says how usage, payment and grace are treated.
	Policy Policy
	// Log hears what an operator should know of a transition; nil is silence.
	Log *slog.Logger
}

// Store reads and writes plans, workspaces and periods in Postgres. It is safe
// for concurrent use. Every write is one transaction and returns after its
// commit; an error means that nothing was written, unless it came from the
// commit itself, when a repeated call finds out.
type Store struct {
	pool    *pgxpool.Pool
	options StoreOptions
}

// NewStore makes a Store on a database that schemas.Migrate brought up to date.
// The pool stays the caller's to close.
func NewStore(pool *pgxpool.Pool, options StoreOptions) *Store {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	return &Store{pool: pool, options: options}
}

// queryer is a pool or a transaction.
type queryer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// databaseNow is Postgres's clock, read when the statement runs.
func databaseNow(ctx context.Context, q queryer) (time.Time, error) {
	rows, err := q.Query(ctx, `SELECT clock_timestamp()`)
	if err != nil {
		return time.Time{}, err
	}
	now, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[time.Time])
	return now.UTC(), err
}
