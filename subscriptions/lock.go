package subscriptions

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// lockedWorkspace is a workspace whose row is locked until the transaction ends,
// so that its subscriptions change one after the other.
type lockedWorkspace struct {
	id       string
	revision int64
	// active is the row it points to, empty without one.
	active string
	pinned *SubscriptionKey
	// now is the database's clock, read after the lock was won, unless a caller
	// says otherwise.
	now time.Time
}

// createWorkspace makes a workspace that the database has never seen. Whoever does
// so gives it its first revision.
func createWorkspace(ctx context.Context, tx pgx.Tx, id string) error {
	_, err := tx.Exec(ctx, `INSERT INTO workspaces (id, revision) VALUES (@id, 0) ON CONFLICT (id) DO NOTHING`,
		pgx.NamedArgs{"id": id})
	if err != nil {
		return fmt.Errorf("create workspace: %w", err)
	}
	return nil
}

func lockWorkspace(ctx context.Context, tx pgx.Tx, id string) (lockedWorkspace, error) {
	rows, err := tx.Query(ctx, `SELECT `+lockedColumns+` FROM workspaces w WHERE id = @id FOR UPDATE`, pgx.NamedArgs{"id": id})
	if err != nil {
		return lockedWorkspace{}, fmt.Errorf("lock workspace: %w", err)
	}
	locked, err := pgx.CollectExactlyOneRow(rows, scanLocked)
	if err != nil {
		return lockedWorkspace{}, fmt.Errorf("lock workspace: %w", err)
	}
	if locked.now, err = databaseNow(ctx, tx); err != nil {
		return lockedWorkspace{}, fmt.Errorf("read the database's clock: %w", err)
	}
	return locked, nil
}

const lockedColumns = `w.id, w.revision, coalesce(w.active_subscription_id::text, ''),
	w.pinned_source, w.pinned_account, w.pinned_livemode, w.pinned_source_id`

func scanLocked(row pgx.CollectableRow) (lockedWorkspace, error) {
	var (
		w      lockedWorkspace
		pinned pinnedKey
	)
	err := row.Scan(append([]any{&w.id, &w.revision, &w.active}, pinned.columns()...)...)
	w.pinned = pinned.key()
	return w, err
}

// lastPeriod is the newest row of a subscription, open or closed, or nil.
func lastPeriod(ctx context.Context, tx pgx.Tx, key SubscriptionKey) (*Subscription, error) {
	rows, err := tx.Query(ctx, `SELECT `+subscriptionColumns+` FROM subscriptions
		WHERE source = @source AND account = @account AND livemode = @livemode AND source_id = @source_id
		ORDER BY period_start DESC LIMIT 1`, pgx.NamedArgs{
		"source": key.Source, "account": key.Account, "livemode": key.Livemode, "source_id": key.SourceID,
	})
	if err != nil {
		return nil, fmt.Errorf("read last period: %w", err)
	}
	return atMostOnePeriod(rows)
}

func atMostOnePeriod(rows pgx.Rows) (*Subscription, error) {
	found, err := pgx.CollectRows(rows, scanSubscription)
	if err != nil {
		return nil, fmt.Errorf("read period: %w", err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return &found[0], nil
}
