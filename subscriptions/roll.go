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
// in the background calls the same. One that is set to end by now ends instead.
//
// One row is opened, for the period that runs now. Periods that passed unseen
// are not invented; the gap is noted in the new row, which takes the plan's
// newest revision, or keeps its terms if the plan left the catalog.
func (s *Store) roll(ctx context.Context, workspace string, at time.Time) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		locked, err := lockWorkspace(ctx, tx, workspace)
		if err != nil {
			return err
		}
		if locked.active == "" {
			return nil
		}
		now := locked.now
		if at.Before(now) {
			now = at
		}
		due, err := duePeriod(ctx, tx, locked.active, now)
		if err != nil || due == nil {
			return err
		}
		state := stateOf(*due)
		if err := state.renewOrEnd(now); err != nil {
			return err
		}
		terms, err := renewedTerms(ctx, tx, state.PlanKey, due)
		if err != nil {
			return err
		}
		_, err = s.carryOut(ctx, tx, step{
			workspace: locked, cause: "renewal",
			moment: Moment{Last: due, Says: state, Terms: terms, Now: now},
		})
		return err
	})
}

func (s *SourceState) renewOrEnd(now time.Time) error {
	if s.CancelAt != nil && !s.CancelAt.After(now) {
		s.Status, s.EndedAt = StatusCanceled, s.CancelAt
		return nil
	}
	return s.renew(now)
}

// duePeriod is the open row of the id if it is over and renews by itself.
func duePeriod(ctx context.Context, tx pgx.Tx, id string, now time.Time) (*Subscription, error) {
	rows, err := tx.Query(ctx, `SELECT `+subscriptionColumns+` FROM subscriptions
		WHERE id = @id::uuid AND closed_at IS NULL AND "interval" IS NOT NULL AND period_end <= @now`,
		pgx.NamedArgs{"id": id, "now": now})
	if err != nil {
		return nil, fmt.Errorf("read period %s: %w", id, err)
	}
	return atMostOnePeriod(rows)
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
