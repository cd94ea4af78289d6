package subscriptions

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Assign puts a workspace on a plan and returns the period row that is now the
// workspace's active one. The workspace is created if it is new, and its
// revision rises by one in any case.
//
//	no open period of the source    open the one that contains now     created
//	open, running                   amend it: id, start and usage stay  (its kind)
//	open, running, with NewPeriod   close it now, open one from now     cycle
//	open, but over                  close it, open the current period   cycle
//
// A workspace has one subscription per source. Whichever was assigned last is
// the active one; that of the other source stays open beside it and counts
// nothing. The terms are those of the plan's newest revision.
//
// The error wraps ErrInvalidAssignment, which lists all faults of the request,
// ErrUnknownPlan, or a fault of the database; nothing is written then.
func (s *Store) Assign(ctx context.Context, a Assignment) (Subscription, error) {
	t, err := a.check()
	if err != nil {
		return Subscription{}, err
	}
	var row Subscription
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		row, err = assign(ctx, tx, a, t)
		return err
	})
	if err != nil {
		return Subscription{}, fmt.Errorf("assign workspace %s: %w", a.WorkspaceID, err)
	}
	return row, nil
}

func assign(ctx context.Context, tx pgx.Tx, a Assignment, t terms) (Subscription, error) {
	now, err := lockWorkspace(ctx, tx, a.WorkspaceID)
	if err != nil {
		return Subscription{}, err
	}
	if !a.Now.IsZero() {
		now = a.Now.UTC()
	}
	if err := t.startedBy(now); err != nil {
		return Subscription{}, err
	}
	plan, err := latestPlan(ctx, tx, a.PlanKey)
	if err != nil {
		return Subscription{}, err
	}
	if plan == nil || plan.Removed {
		return Subscription{}, unknownPlan(ctx, tx, a.PlanKey)
	}
	open, err := openPeriod(ctx, tx, a.WorkspaceID, t.source)
	if err != nil {
		return Subscription{}, err
	}
	row, err := t.write(ctx, tx, transition{workspace: a.WorkspaceID, open: open, plan: snapshotOf(*plan), now: now, restart: a.NewPeriod})
	if err != nil {
		return Subscription{}, err
	}
	return row, activate(ctx, tx, a.WorkspaceID, row.ID)
}

// transition is what an assignment meets: the open period, if there is one, and
// the terms to put it on.
type transition struct {
	workspace string
	open      *Subscription
	plan      Snapshot
	now       time.Time
	restart   bool
}

func (t terms) write(ctx context.Context, tx pgx.Tx, m transition) (Subscription, error) {
	switch {
	case m.open == nil:
		row, err := t.first(m.workspace, m.plan, m.now)
		if err != nil {
			return Subscription{}, err
		}
		return insertSubscription(ctx, tx, row)
	case m.restart:
		row, err := t.restarted(*m.open, m.plan, m.now)
		if err != nil {
			return Subscription{}, err
		}
		return openNext(ctx, tx, row)
	case !m.now.Before(m.open.PeriodEnd):
		row, err := t.renewed(*m.open, m.plan, m.now)
		if err != nil {
			return Subscription{}, err
		}
		return openNext(ctx, tx, row)
	default:
		row, err := t.amended(*m.open, m.plan, m.now)
		if err != nil {
			return Subscription{}, err
		}
		return row, amend(ctx, tx, *m.open, row, t.cause)
	}
}

// lockWorkspace creates the workspace or raises its revision, which locks its
// row until the transaction ends, and reads the clock after the lock was won.
func lockWorkspace(ctx context.Context, tx pgx.Tx, workspace string) (time.Time, error) {
	_, err := tx.Exec(ctx, `INSERT INTO workspaces (id, revision) VALUES (@id, 1)
		ON CONFLICT (id) DO UPDATE SET revision = workspaces.revision + 1, updated_at = now()`,
		pgx.NamedArgs{"id": workspace})
	if err != nil {
		return time.Time{}, fmt.Errorf("lock workspace: %w", err)
	}
	now, err := databaseNow(ctx, tx)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the database's clock: %w", err)
	}
	return now, nil
}

func openPeriod(ctx context.Context, tx pgx.Tx, workspace string, source Source) (*Subscription, error) {
	rows, err := tx.Query(ctx, `SELECT `+subscriptionColumns+` FROM subscriptions
		WHERE source = @source AND account = '' AND livemode AND source_id = @workspace AND closed_at IS NULL
		FOR UPDATE`, pgx.NamedArgs{"source": source, "workspace": workspace})
	if err != nil {
		return nil, fmt.Errorf("read open period: %w", err)
	}
	open, err := pgx.CollectRows(rows, scanSubscription)
	if err != nil {
		return nil, fmt.Errorf("read open period: %w", err)
	}
	if len(open) == 0 {
		return nil, nil
	}
	return &open[0], nil
}

func activate(ctx context.Context, tx pgx.Tx, workspace, subscription string) error {
	_, err := tx.Exec(ctx, `UPDATE workspaces SET active_subscription_id = @subscription::uuid WHERE id = @id`,
		pgx.NamedArgs{"id": workspace, "subscription": subscription})
	if err != nil {
		return fmt.Errorf("activate subscription %s: %w", subscription, err)
	}
	return nil
}
