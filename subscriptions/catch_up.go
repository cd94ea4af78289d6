package subscriptions

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// catchUp carries out whatever of a workspace is due by both clocks, and does
// nothing otherwise; so of any number of callers one does it, and the others find it
// done. It is the only way in which time changes a subscription: a lookup calls it for
// a reading that is over, and Lifecycle for whatever nobody asks for.
//
// Each open row is taken once: one row is opened, for the period that runs now.
// Periods that passed unseen are not invented; the gap is noted in the new row. A new
// billing period takes the plan's newest revision, or keeps its terms if the plan
// left the catalog; a new quota inside the same one keeps them. Then it is looked at
// which subscription counts.
func (s *Store) catchUp(ctx context.Context, workspace string, at time.Time) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		locked, err := lockWorkspace(ctx, tx, workspace)
		if err != nil {
			return err
		}
		locked.now = earlier(at, locked.now)
		_, err = s.catchUpLocked(ctx, tx, locked)
		return err
	})
}

// catchUpLocked is catchUp at the workspace's now. It returns the workspace as it is
// then.
func (s *Store) catchUpLocked(ctx context.Context, tx pgx.Tx, locked lockedWorkspace) (lockedWorkspace, error) {
	open, err := openPeriods(ctx, tx, locked.id)
	if err != nil {
		return lockedWorkspace{}, err
	}
	o := outcome{workspace: locked, now: locked.now, openKnown: true}
	for _, c := range open {
		moment, err := passing(ctx, tx, c.Subscription, locked.now)
		if err != nil {
			return lockedWorkspace{}, fmt.Errorf("subscription %s: %w", c.ID, err)
		}
		action, err := s.act(ctx, tx, moment.with(c.overrides), "time")
		if err != nil {
			return lockedWorkspace{}, fmt.Errorf("subscription %s: %w", c.ID, err)
		}
		o.add(c, action)
	}
	next, err := s.settle(ctx, tx, o)
	if err != nil {
		return lockedWorkspace{}, err
	}
	return next, s.postponeDone(ctx, tx, o)
}

// passing is the moment in which an open row's source says that time has passed.
func passing(ctx context.Context, tx pgx.Tx, row Subscription, now time.Time) (Moment, error) {
	m := Moment{Last: &row, Says: Passage(row, now), Terms: row.Snapshot, Now: now}
	if m.Says.PlanKey == "" {
		plan, err := defaultPlan(ctx, tx)
		if err != nil {
			return Moment{}, err
		}
		m.Says.PlanKey = plan
	}
	if m.Says.PlanKey == row.PlanKey && !m.Says.Period.Start.After(row.Billing.Start) {
		return m, nil
	}
	var err error
	m.Terms, err = renewedTerms(ctx, tx, m.Says.PlanKey, &row)
	return m, err
}

func defaultPlan(ctx context.Context, tx pgx.Tx) (string, error) {
	rows, err := tx.Query(ctx, selectDefaultPlan)
	if err != nil {
		return "", fmt.Errorf("read default plan: %w", err)
	}
	plans, err := pgx.CollectRows(rows, scanPlan)
	if err != nil {
		return "", fmt.Errorf("read default plan: %w", err)
	}
	if len(plans) == 0 {
		return "", ErrNoDefaultPlan
	}
	return plans[0].Key, nil
}

// postponeDone says when the rows that time has not changed are due again: of those
// that stopped counting, an election has been held.
func (s *Store) postponeDone(ctx context.Context, tx pgx.Tx, o outcome) error {
	for _, row := range o.untouched {
		due := s.options.Policy.due(row, o.now)
		if sameInstant(row.DueAt, due) {
			continue
		}
		_, err := tx.Exec(ctx, `UPDATE subscriptions SET due_at = @due WHERE id = @id::uuid`, pgx.NamedArgs{"id": row.ID, "due": due})
		if err != nil {
			return fmt.Errorf("note when period %s is due: %w", row.ID, err)
		}
	}
	return nil
}

func sameInstant(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

// renewedTerms are the newest terms of a plan. A subscription that is on it
// already keeps what it had if the plan left the catalog.
func renewedTerms(ctx context.Context, tx pgx.Tx, plan string, last *Subscription) (Snapshot, error) {
	latest, err := latestPlan(ctx, tx, plan)
	switch {
	case err != nil:
		return Snapshot{}, err
	case latest != nil && !latest.Removed:
		return snapshotOf(*latest), nil
	case last != nil && last.PlanKey == plan:
		return last.Snapshot, nil
	default:
		return Snapshot{}, unknownPlan(ctx, tx, plan)
	}
}
