package subscriptions

import (
	"context"
	"fmt"

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
// the active one; where a live subscription would win by its plan's rank, the
// assigned one is pinned until another is assigned. The others stay open beside
// it and count nothing. The terms are those of the plan's newest revision.
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
		row, err = s.assign(ctx, tx, a, t)
		return err
	})
	if err != nil {
		return Subscription{}, fmt.Errorf("assign workspace %s: %w", a.WorkspaceID, err)
	}
	return row, nil
}

func (s *Store) assign(ctx context.Context, tx pgx.Tx, a Assignment, t terms) (Subscription, error) {
	if err := createWorkspace(ctx, tx, a.WorkspaceID); err != nil {
		return Subscription{}, err
	}
	workspace, err := lockWorkspace(ctx, tx, a.WorkspaceID)
	if err != nil {
		return Subscription{}, err
	}
	now := workspace.now
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
	// One that has ended is not looked at: what a person assigns then is new.
	last, err := lastPeriod(ctx, tx, t.key(a.WorkspaceID))
	if err != nil {
		return Subscription{}, err
	}
	if last != nil && last.ClosedAt != nil {
		last = nil
	}
	state, err := t.state(a, last, now)
	if err != nil {
		return Subscription{}, err
	}
	return s.carryOut(ctx, tx, step{
		workspace: workspace, cause: t.cause, assigned: true,
		moment: Moment{Last: last, Says: state, Terms: snapshotOf(*plan), Retake: true, Now: now},
	})
}
