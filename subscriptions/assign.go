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
//	open, but set to end by now     end it, open the one that contains now   created
//
// With a trial, the first and the third begin with one instead (status trialing),
// and an open trial that runs is given another length. NewPeriod ends an open trial.
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
	if !a.Now.IsZero() {
		workspace.now = a.Now.UTC()
	}
	now := workspace.now
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
	workspace, last, err := s.openPeriod(ctx, tx, workspace, t.key(a.WorkspaceID))
	if err != nil {
		return Subscription{}, err
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

// openPeriod is the open row of a subscription, or nil: one that has ended is not
// looked at, since what a person assigns then is new. One that time has ended is ended
// first.
func (s *Store) openPeriod(ctx context.Context, tx pgx.Tx, w lockedWorkspace, key SubscriptionKey) (lockedWorkspace, *Subscription, error) {
	last, err := lastPeriod(ctx, tx, key)
	if err != nil || last == nil || last.ClosedAt != nil {
		return w, nil, err
	}
	if standingOf(Passage(*last, w.now).Status) != standingEnded {
		return w, last, nil
	}
	w, err = s.catchUpLocked(ctx, tx, w)
	return w, nil, err
}
