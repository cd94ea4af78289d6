package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Lease is the lease of an open execution, as the ledger knows it.
type Lease struct {
	WorkspaceID string
	ExecutionID string
	// Until is its end: what the decision said, or later where it was looked up since.
	Until time.Time
}

// Found is what looking a lease up came to.
type Found struct {
	// Live: the lease still holds a slot, until Until.
	Live  bool
	Until time.Time
	// Err is why it could not be looked up; it is looked up again.
	Err error
}

// Lapsed is what a look at leases that should be over came to.
type Lapsed struct {
	// Leaked are those that have ended without a completion, now noted as leaked.
	Leaked []Lease
	// Extended is how many turned out to run on.
	Extended int
	// More: as many were due as the look may take up, and all of them are done.
	More bool
}

// CheckLeases hands the leases whose end has passed to lookup, which says what becomes
// of each, and notes that: a later end, or that it leaked. One that leaked is never
// handed out again. What another look has in hand is left to that. The executions stay
// locked meanwhile, so lookup must end within seconds. The error is the first of
// lookup's if none could be looked up, else one of Postgres.
func (s *Store) CheckLeases(ctx context.Context, sweep Sweep, lookup func(context.Context, []Lease) []Found) (Lapsed, error) {
	var lapsed Lapsed
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		due, err := overLeases(ctx, tx, sweep)
		if err != nil || len(due) == 0 {
			return err
		}
		var extended []Lease
		var fault error
		for i, found := range lookup(ctx, due) {
			switch {
			case found.Err != nil:
				if fault == nil {
					fault = found.Err
				}
			case found.Live:
				extended = append(extended, Lease{due[i].WorkspaceID, due[i].ExecutionID, found.Until})
			default:
				lapsed.Leaked = append(lapsed.Leaked, due[i])
			}
		}
		lapsed.Extended = len(extended)
		done := len(extended) + len(lapsed.Leaked)
		if done == 0 {
			return fault
		}
		lapsed.More = done == sweep.Limit
		return noteLapsed(ctx, tx, extended, lapsed.Leaked)
	})
	if err != nil {
		return Lapsed{}, fmt.Errorf("check leases that are over: %w", err)
	}
	return lapsed, nil
}

func overLeases(ctx context.Context, tx pgx.Tx, sweep Sweep) ([]Lease, error) {
	rows, err := tx.Query(ctx, `
		select workspace_id, execution_id, leased_until from executions
		where outcome is null and leaked_at is null and leased_until is not null and leased_until < now() - @grace::interval
		order by leased_until limit @limit
		for update skip locked`, sweep.args())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Lease])
}

func noteLapsed(ctx context.Context, tx pgx.Tx, extended, leaked []Lease) error {
	statements := &pgx.Batch{}
	if len(extended) > 0 {
		statements.Queue(`
			update executions e set leased_until = greatest(e.leased_until, t.until)
			from unnest(@workspaces::text[], @executions::text[], @until::timestamptz[]) as t (workspace_id, execution_id, until)
			where e.workspace_id = t.workspace_id and e.execution_id = t.execution_id`, leaseArgs(extended))
	}
	if len(leaked) > 0 {
		statements.Queue(`
			update executions e set leaked_at = now()
			from unnest(@workspaces::text[], @executions::text[]) as t (workspace_id, execution_id)
			where e.workspace_id = t.workspace_id and e.execution_id = t.execution_id`, leaseArgs(leaked))
	}
	return tx.SendBatch(ctx, statements).Close()
}

func leaseArgs(leases []Lease) pgx.NamedArgs {
	return pgx.NamedArgs{
		"workspaces": column(leases, func(l Lease) string { return l.WorkspaceID }),
		"executions": column(leases, func(l Lease) string { return l.ExecutionID }),
		"until":      column(leases, func(l Lease) time.Time { return l.Until }),
	}
}

// Leak is an execution whose lease ended and that nobody has said to be over.
type Leak struct {
	WorkspaceID string
	ExecutionID string
	PlanKey     string
	AdmittedAt  time.Time
	// LeasedUntil is when its slot became free by itself, LeakedAt when that was found.
	LeasedUntil time.Time
	LeakedAt    time.Time
	// RuntimeCode is the denial that told it to stop, 0 for none.
	RuntimeCode int
}

// LeakQuery asks for leaks.
type LeakQuery struct {
	// Workspace, unless empty, leaves out those of others.
	Workspace string
	// Limit is how many to return, DefaultLimit if 0 and never over MaxLimit.
	Limit int
}

// Leaks are the open leaks, by workspace and the newest of each first.
func (s *Store) Leaks(ctx context.Context, q LeakQuery) ([]Leak, error) {
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	rows, err := s.pool.Query(ctx, `
		select workspace_id, execution_id, plan_key, admitted_at, leased_until, leaked_at, coalesce(runtime_code, 0)
		from executions
		where outcome is null and leaked_at is not null and (@workspace = '' or workspace_id = @workspace)
		order by workspace_id, leaked_at desc, execution_id limit @limit`,
		pgx.NamedArgs{"workspace": q.Workspace, "limit": min(q.Limit, MaxLimit)})
	if err != nil {
		return nil, fmt.Errorf("read leaks: %w", err)
	}
	leaks, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Leak])
	if err != nil {
		return nil, fmt.Errorf("read leaks: %w", err)
	}
	for i, l := range leaks {
		leaks[i].AdmittedAt, leaks[i].LeasedUntil, leaks[i].LeakedAt = l.AdmittedAt.UTC(), l.LeasedUntil.UTC(), l.LeakedAt.UTC()
	}
	return leaks, nil
}

// MostLeaksCounted bounds what CountLeaks counts.
const MostLeaksCounted = 100_000

// CountLeaks is how many leaks are open. MostLeaksCounted stands for that many or more.
func (s *Store) CountLeaks(ctx context.Context) (int, error) {
	var n int
	err := s.pool.QueryRow(ctx, `
		select count(*) from (
			select 1 from executions where outcome is null and leaked_at is not null limit @most) as open`,
		pgx.NamedArgs{"most": MostLeaksCounted}).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count leaks: %w", err)
	}
	return n, nil
}
