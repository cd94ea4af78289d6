package subscriptions

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Follow brings a subscription to what its source says of it and returns its
// newest row; the row's id is empty if there is none. The workspace is created
// if it is new. States may come in any order and more than once: see Transition.
// The cause is written beside each change. While its plan is unresolved it stays on the
// one that it was on; without one it is ErrUnknownPlan.
//
// The error wraps ErrInvalidState, which lists all faults of the state,
// ErrUnknownPlan, or a fault of the database; nothing is written then.
func (s *Store) Follow(ctx context.Context, state SourceState, cause string) (Subscription, error) {
	var row Subscription
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var err error
		row, err = s.FollowIn(ctx, tx, state, cause)
		return err
	})
	return row, err
}

// FollowIn is Follow in the caller's transaction, so that what it writes is there
// together with what the caller does. It locks the workspace's row first, and the
// caller must not have locked one of another workspace.
func (s *Store) FollowIn(ctx context.Context, tx pgx.Tx, state SourceState, cause string) (Subscription, error) {
	if err := state.check(); err != nil {
		return Subscription{}, err
	}
	row, err := s.follow(ctx, tx, state, cause)
	if err != nil {
		return Subscription{}, fmt.Errorf("follow subscription %s of workspace %s: %w", state.Key.SourceID, state.WorkspaceID, err)
	}
	return row, nil
}

func (s *Store) follow(ctx context.Context, tx pgx.Tx, state SourceState, cause string) (Subscription, error) {
	if err := createWorkspace(ctx, tx, state.WorkspaceID); err != nil {
		return Subscription{}, err
	}
	workspace, err := lockWorkspace(ctx, tx, state.WorkspaceID)
	if err != nil {
		return Subscription{}, err
	}
	last, err := lastPeriod(ctx, tx, state.Key)
	if err != nil {
		return Subscription{}, err
	}
	if last != nil && last.WorkspaceID != state.WorkspaceID {
		return Subscription{}, fmt.Errorf("%w: it belongs to workspace %s", ErrInvalidState, last.WorkspaceID)
	}
	if state.PlanUnresolved && last != nil {
		state.PlanKey = last.PlanKey
	}
	terms, err := renewedTerms(ctx, tx, state.PlanKey, last)
	if err != nil {
		return Subscription{}, err
	}
	return s.carryOut(ctx, tx, step{
		workspace: workspace, cause: cause,
		moment: Moment{Last: last, Says: state, Terms: terms, Now: workspace.now},
	})
}
