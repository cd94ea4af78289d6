package subscriptions

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// DefaultExpireLimit is how many workspaces one ExpireOverrides looks after.
const DefaultExpireLimit = 1000

// ExpireOverrides removes overrides that have expired and puts the plan's values
// back into the open periods, one transaction a workspace, at most limit of them,
// DefaultExpireLimit if 0. It returns for how many workspaces it did, so a result
// of limit says that more may be due. Any number of processes may call it: each
// workspace is taken by one, the others pass it by.
//
// Nothing depends on when it runs: a lookup never uses an override that has
// expired. One workspace that fails does not keep the others waiting; the error
// joins the faults of all that did, and what was done stays done.
func (s *Store) ExpireOverrides(ctx context.Context, limit int) (int, error) {
	if limit <= 0 {
		limit = DefaultExpireLimit
	}
	var (
		done   int
		faults []error
		failed = []string{}
	)
	for done < limit {
		workspace, changed, err := s.expireNext(ctx, failed)
		switch {
		case err != nil && (workspace == "" || ctx.Err() != nil):
			return done, errors.Join(append(faults, fmt.Errorf("expire overrides: %w", err))...)
		case err != nil:
			failed = append(failed, workspace)
			faults = append(faults, fmt.Errorf("expire overrides of workspace %s: %w", workspace, err))
		case workspace == "":
			return done, errors.Join(faults...)
		case changed:
			done++
		}
	}
	return done, errors.Join(faults...)
}

// expireNext looks after the workspace whose override expired first, except for
// those named; it is empty when none is due.
func (s *Store) expireNext(ctx context.Context, except []string) (workspace string, changed bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if workspace, err = lockExpired(ctx, tx, except); err != nil || workspace == "" {
			return err
		}
		changed, err = s.expire(ctx, tx, workspace)
		return err
	})
	return workspace, changed, err
}

func lockExpired(ctx context.Context, tx pgx.Tx, except []string) (string, error) {
	rows, err := tx.Query(ctx, `SELECT w.id FROM plan_overrides o JOIN workspaces w ON w.id = o.workspace_id
		WHERE o.expires_at <= clock_timestamp() AND w.id <> ALL(@except)
		ORDER BY o.expires_at LIMIT 1 FOR UPDATE OF w SKIP LOCKED`, pgx.NamedArgs{"except": except})
	if err != nil {
		return "", fmt.Errorf("look for expired overrides: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", fmt.Errorf("look for expired overrides: %w", err)
	}
	if len(found) == 0 {
		return "", nil
	}
	return found[0], nil
}

// expire looks again what is due: it may have been set anew before the lock was won.
func (s *Store) expire(ctx context.Context, tx pgx.Tx, workspace string) (bool, error) {
	locked, err := lockWorkspace(ctx, tx, workspace)
	if err != nil {
		return false, err
	}
	deleted, err := tx.Exec(ctx, `DELETE FROM plan_overrides WHERE workspace_id = @workspace AND expires_at <= @now`,
		pgx.NamedArgs{"workspace": workspace, "now": locked.now})
	if err != nil {
		return false, fmt.Errorf("remove overrides: %w", err)
	}
	if deleted.RowsAffected() == 0 {
		return false, nil
	}
	err = s.override(ctx, tx, retaking{workspace: locked, cause: "override expired", why: "override expired"})
	return err == nil, err
}
