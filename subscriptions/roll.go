package subscriptions

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// roll opens the workspace's current period if its active one is over by both
// clocks, and does nothing otherwise; so of any number of callers one rolls, and
// the others find it done. It is the only way in which a subscription with an
// interval renews: a lookup calls it for a row that is due, and whatever renews
// in the background calls the same.
//
// One row is opened, for the period that runs now. Periods that passed unseen
// are not invented; the gap shows between the rows' dates. The new row takes the
// plan's newest revision, or keeps its terms if the plan left the catalog.
func (s *Store) roll(ctx context.Context, workspace string, at time.Time) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		due, now, err := lockDue(ctx, tx, workspace, at)
		if err != nil || due == nil {
			return err
		}
		next, err := nextPeriod(ctx, tx, *due, now)
		if err != nil {
			return err
		}
		if next, err = openNext(ctx, tx, next); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE workspaces SET active_subscription_id = @next::uuid,
			revision = revision + 1, updated_at = now() WHERE id = @id`,
			pgx.NamedArgs{"id": workspace, "next": next.ID})
		if err != nil {
			return fmt.Errorf("activate period %s: %w", next.ID, err)
		}
		return nil
	})
}

// lockDue locks the workspace and returns its active row if that is over, with
// the earlier of the two clocks; else nil.
func lockDue(ctx context.Context, tx pgx.Tx, workspace string, at time.Time) (*Subscription, time.Time, error) {
	rows, err := tx.Query(ctx, `SELECT active_subscription_id::text FROM workspaces WHERE id = @id FOR UPDATE`,
		pgx.NamedArgs{"id": workspace})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("lock workspace: %w", err)
	}
	active, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[*string])
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("lock workspace: %w", err)
	}
	if active == nil {
		return nil, time.Time{}, nil
	}
	now, err := databaseNow(ctx, tx)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read the database's clock: %w", err)
	}
	if at.Before(now) {
		now = at
	}
	rows, err = tx.Query(ctx, `SELECT `+subscriptionColumns+` FROM subscriptions
		WHERE id = @id::uuid AND closed_at IS NULL AND "interval" IS NOT NULL AND period_end <= @now`,
		pgx.NamedArgs{"id": *active, "now": now})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read period %s: %w", *active, err)
	}
	due, err := pgx.CollectRows(rows, scanSubscription)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read period %s: %w", *active, err)
	}
	if len(due) == 0 {
		return nil, time.Time{}, nil
	}
	return &due[0], now, nil
}

func nextPeriod(ctx context.Context, tx pgx.Tx, due Subscription, now time.Time) (Subscription, error) {
	snapshot := due.Snapshot
	plan, err := latestPlan(ctx, tx, due.PlanKey)
	if err != nil {
		return Subscription{}, err
	}
	if plan != nil && !plan.Removed {
		snapshot = snapshotOf(*plan)
	}
	period := due.Interval.Period(due.Anchor, now)
	period.Start = later(period.Start, due.PeriodEnd)
	return due.successor(period, snapshot)
}
