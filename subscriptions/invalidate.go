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
// travels with the news.
//
// A workspace that the database has never seen stays so, for to be known would
// entitle it where unknown ones are not. The news then carries revision 0, at
// which a cache drops whatever it has; so does the result.
func (s *Store) Invalidate(ctx context.Context, workspace, reason string) (revision int64, err error) {
	if !schemas.ValidID(workspace) {
		return 0, fmt.Errorf("invalidate workspace %q: %s", workspace, idRule)
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		locked, err := lockWorkspace(ctx, tx, workspace)
		if errors.Is(err, pgx.ErrNoRows) {
			return tellUnknown(ctx, tx, workspace, reason)
		}
		if err != nil {
			return err
		}
		next, err := s.settle(ctx, tx, outcome{workspace: locked, now: locked.now, why: reason})
		revision = next.revision
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("invalidate workspace %s: %w", workspace, err)
	}
	return revision, nil
}

func tellUnknown(ctx context.Context, tx pgx.Tx, workspace, reason string) error {
	batch := &pgx.Batch{}
	news := schemas.PlanInvalidated{WorkspaceID: workspace, Reason: reason}
	if err := enqueue(batch, workspace, NewsInvalidated, news); err != nil {
		return err
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("tell it: %w", err)
	}
	return nil
}
