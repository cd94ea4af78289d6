package subscriptions

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// retaking is how the open periods of a locked workspace come to other terms.
type retaking struct {
	workspace lockedWorkspace
	// newest takes the newest revision of each row's plan, unless the plan left the
	// catalog; otherwise a row keeps its revision, and only overrides change.
	newest bool
	// cause is written beside each change, why is told to caches.
	cause, why string
}

// retake gives each open period the terms that it should have: the plan's, with the
// overrides that hold now. What was used stands. The outcome is yet to be settled.
func (s *Store) retake(ctx context.Context, tx pgx.Tx, r retaking) (outcome, error) {
	open, err := openPeriods(ctx, tx, r.workspace.id)
	if err != nil {
		return outcome{}, err
	}
	o := outcome{workspace: r.workspace, now: r.workspace.now, openKnown: true, why: r.why}
	for _, row := range open {
		terms := row.Snapshot
		if r.newest {
			latest, err := latestPlan(ctx, tx, row.PlanKey)
			if err != nil {
				return outcome{}, err
			}
			if latest == nil || latest.Removed || latest.Revision == row.PlanRevision {
				o.open = append(o.open, row)
				continue
			}
			terms = snapshotOf(*latest)
			o.ranked = o.ranked || int(latest.Rank) != row.Rank
		}
		moment := Moment{Last: &row.Subscription, Says: stateOf(row.Subscription), Terms: terms, Retake: true, Now: o.now}
		action, err := s.act(ctx, tx, moment.with(row.overrides), r.cause)
		if err != nil {
			return outcome{}, fmt.Errorf("subscription %s: %w", row.ID, err)
		}
		o.add(row, action)
	}
	return o, nil
}

// override brings a workspace to the overrides that hold now, and has caches read
// it again. The row that stands in for one that is held is closed, and is amended
// all the same: it is what the workspace is measured against.
func (s *Store) override(ctx context.Context, tx pgx.Tx, r retaking) error {
	o, err := s.retake(ctx, tx, r)
	if err != nil {
		return err
	}
	if err := overrideClosed(ctx, tx, r.workspace, r.cause); err != nil {
		return err
	}
	_, err = s.settle(ctx, tx, o)
	return err
}

func overrideClosed(ctx context.Context, tx pgx.Tx, workspace lockedWorkspace, cause string) error {
	rows, err := tx.Query(ctx, `SELECT `+subscriptionColumns+` FROM subscriptions
		WHERE id = nullif(@active, '')::uuid AND closed_at IS NOT NULL`, pgx.NamedArgs{"active": workspace.active})
	if err != nil {
		return fmt.Errorf("read the period that counts: %w", err)
	}
	row, err := atMostOnePeriod(rows)
	if err != nil || row == nil {
		return err
	}
	all, err := overridesOf(ctx, tx, workspace.id)
	if err != nil {
		return err
	}
	to := *row
	to.setTerms(row.Snapshot.with(liveOverrides(all, workspace.now)))
	changes := diffText(subscriptionText(*row), subscriptionText(to))
	if len(changes) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	amend(batch, to, changes, cause)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("amend period %s: %w", to.ID, err)
	}
	return nil
}
