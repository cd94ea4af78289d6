package subscriptions

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// catchUpPatience bounds one workspace, so that one that hangs is put off.
	catchUpPatience = 10 * time.Second
	// Postgres ends a transaction that is silent for this long, so that a process that
	// hangs, or whose host is gone, gives its workspace back.
	catchUpSilence = 20 * time.Second
)

// claimDue locks the workspace whose open row is due the longest, of those that
// nobody has locked. It reads the beginning of subscriptions_due.
const claimDue = `SELECT ` + lockedColumns + `
	FROM subscriptions s JOIN workspaces w ON w.id = s.workspace_id
	WHERE s.closed_at IS NULL AND s.due_at <= now()
	ORDER BY s.due_at LIMIT 1 FOR UPDATE OF w SKIP LOCKED`

// catchUpNext catches up one workspace that is due and returns its id, which is
// empty when none is due, or when an error came before one was found.
func (s *Store) catchUpNext(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, catchUpPatience)
	defer cancel()
	workspace := ""
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		locked, err := claimWorkspace(ctx, tx)
		if err != nil || locked == nil {
			return err
		}
		workspace = locked.id
		_, err = s.catchUpLocked(ctx, tx, *locked)
		return err
	})
	if err != nil {
		return workspace, fmt.Errorf("catch up workspace %s: %w", workspace, err)
	}
	return workspace, nil
}

func claimWorkspace(ctx context.Context, tx pgx.Tx) (*lockedWorkspace, error) {
	var (
		claimed []lockedWorkspace
		now     time.Time
	)
	batch := &pgx.Batch{}
	batch.Queue(fmt.Sprintf(`SET LOCAL idle_in_transaction_session_timeout = %d`, catchUpSilence.Milliseconds()))
	batch.Queue(claimDue).Query(func(rows pgx.Rows) error {
		var err error
		claimed, err = pgx.CollectRows(rows, scanLocked)
		return err
	})
	batch.Queue(`SELECT clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("find what is due: %w", err)
	}
	if len(claimed) == 0 {
		return nil, nil
	}
	claimed[0].now = now.UTC()
	return &claimed[0], nil
}

// putOff lets a workspace be due no earlier than after a while. Lookups of it are not
// held up: they go by what is due, not by when it is looked for.
func (s *Store) putOff(ctx context.Context, workspace string, again time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpPatience)
	defer cancel()
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := lockWorkspace(ctx, tx, workspace); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE subscriptions SET due_at = now() + @again::interval
			WHERE workspace_id = @workspace AND closed_at IS NULL AND due_at <= now()`,
			pgx.NamedArgs{"workspace": workspace, "again": again})
		return err
	})
	if err != nil {
		return fmt.Errorf("put off workspace %s: %w", workspace, err)
	}
	return nil
}

// reviewGraces makes due every period that a grace or a hold has to do with. How long
// they last is a setting, which may be another one since they were last looked at.
func (s *Store) reviewGraces(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `UPDATE subscriptions SET due_at = now() WHERE id IN (
		SELECT id FROM subscriptions
		WHERE closed_at IS NULL AND (status = 'past_due' OR held OR overdue_since IS NOT NULL)
		FOR UPDATE SKIP LOCKED)`)
	if err != nil {
		return fmt.Errorf("review graces: %w", err)
	}
	return nil
}

// Overdue lists the open subscriptions whose billing period is over without news of
// the next one, the latest first, up to limit (DefaultPageSize if 0, at most
// MaxPageSize). Ask their source, and Store.Follow what it says: the mark goes with
// the news of a period that is not over. A subscription is marked once, when its period
// ends, and counts for Policy.OverdueGrace longer.
func (s *Store) Overdue(ctx context.Context, limit int) ([]Subscription, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+subscriptionColumns+` FROM subscriptions
		WHERE closed_at IS NULL AND overdue_since IS NOT NULL
		ORDER BY overdue_since DESC LIMIT @limit`, pgx.NamedArgs{"limit": Page{Limit: limit}.size()})
	if err != nil {
		return nil, fmt.Errorf("list overdue subscriptions: %w", err)
	}
	overdue, err := pgx.CollectRows(rows, scanSubscription)
	if err != nil {
		return nil, fmt.Errorf("list overdue subscriptions: %w", err)
	}
	return overdue, nil
}
