package subscriptions

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
)

// Invalidate makes every cache read the workspace's plan again: it finds anew
// which subscription counts, raises the workspace's revision, which it returns,
// and puts the news into the outbox. It returns after the commit. The reason
// travels with the news. A workspace that the database has never seen is
// ErrUnknownWorkspace.
func (s *Store) Invalidate(ctx context.Context, workspace, reason string) (revision int64, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		locked, err := lockWorkspace(ctx, tx, workspace)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrUnknownWorkspace
		}
		if err != nil {
			return err
		}
		next, err := s.elect(ctx, tx, step{workspace: locked, moment: Moment{Now: locked.now}}, Action{Verb: VerbNone})
		if err != nil {
			return err
		}
		next.revision++
		revision = next.revision
		if err := writeWorkspace(ctx, tx, next); err != nil {
			return err
		}
		return enqueue(ctx, tx, workspace, NewsInvalidated, schemas.PlanInvalidated{
			WorkspaceID: workspace, PlanRevision: revision, Reason: reason,
		})
	})
	if err != nil {
		return 0, fmt.Errorf("invalidate workspace %s: %w", workspace, err)
	}
	return revision, nil
}
