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
			newer, err := newerPlan(ctx, tx, row.Subscription)
			if err != nil {
				return outcome{}, err
			}
			if newer == nil {
				o.open = append(o.open, row)
				continue
			}
			terms = snapshotOf(*newer)
			o.ranked = o.ranked || int(newer.Rank) != row.Rank
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

// newerPlan is the newest revision of a period's plan, or nil: the period has it, or the
// plan left the catalog.
func newerPlan(ctx context.Context, tx pgx.Tx, row Subscription) (*PlanRevision, error) {
	latest, err := latestPlan(ctx, tx, row.PlanKey)
	if err != nil || latest == nil || latest.Removed || latest.Revision == row.PlanRevision {
		return nil, err
	}
	return latest, nil
}

// override brings a workspace to the overrides that hold now, and has caches read
// it again.
func (s *Store) override(ctx context.Context, tx pgx.Tx, r retaking) error {
	o, err := s.retake(ctx, tx, r)
	if err != nil {
		return err
	}
	if _, err := retakeClosed(ctx, tx, r); err != nil {
		return err
	}
	_, err = s.settle(ctx, tx, o)
	return err
}

// retakeClosed is retake for the row that stands in for one that is held, and
// reports whether there was one to change. It is closed, and is amended all the
// same: it is what the workspace is measured against.
func retakeClosed(ctx context.Context, tx pgx.Tx, r retaking) (changed bool, err error) {
	rows, err := tx.Query(ctx, `SELECT `+subscriptionColumns+` FROM subscriptions
		WHERE id = nullif(@active, '')::uuid AND closed_at IS NOT NULL`, pgx.NamedArgs{"active": r.workspace.active})
	if err != nil {
		return false, fmt.Errorf("read the period that counts: %w", err)
	}
	row, err := atMostOnePeriod(rows)
	if err != nil || row == nil {
		return false, err
	}
	terms := row.Snapshot
	if r.newest {
		newer, err := newerPlan(ctx, tx, *row)
		if err != nil || newer == nil {
			return false, err
		}
		terms = snapshotOf(*newer)
	}
	all, err := overridesOf(ctx, tx, r.workspace.id)
	if err != nil {
		return false, err
	}
	to := *row
	to.setTerms(terms.with(liveOverrides(all, r.workspace.now)))
	changes := diffText(subscriptionText(*row), subscriptionText(to))
	if len(changes) == 0 {
		return false, nil
	}
	batch := &pgx.Batch{}
	amend(batch, to, changes, r.cause)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return false, fmt.Errorf("amend period %s: %w", to.ID, err)
	}
	return true, nil
}
