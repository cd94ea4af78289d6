package subscriptions

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Concerns are what is not as it should be now with the open subscriptions.
type Concerns struct {
	// Late are those that a lifecycle worker should have caught up by now, and LateFor
	// how long the first of them waits by the database's clock.
	Late    int64
	LateFor time.Duration
	// Overdue are those whose period is over without news of the next one, Unresolved
	// those none of whose prices is in the catalog.
	Overdue, Unresolved int64
	// Removed are those of a plan that has left the catalog: they go on with the terms
	// they have.
	Removed int64
	// Workspaces are all that are known, OnDefault those of them that point to no
	// subscription. That is how it should be with a workspace that bought nothing.
	Workspaces, OnDefault int64
}

const concernsSQL = `SELECT
	count(*) FILTER (WHERE due_at <= now()),
	coalesce(clock_timestamp() - min(due_at) FILTER (WHERE due_at <= now()), interval '0'),
	count(*) FILTER (WHERE overdue_since IS NOT NULL),
	count(*) FILTER (WHERE plan_unresolved),
	count(*) FILTER (WHERE plan_key IN (SELECT plan_key
		FROM (SELECT DISTINCT ON (plan_key) plan_key, removed FROM plan_revisions ORDER BY plan_key, revision DESC) newest
		WHERE removed)),
	(SELECT count(*) FROM workspaces),
	(SELECT count(*) FROM workspaces WHERE active_subscription_id IS NULL)
	FROM subscriptions WHERE closed_at IS NULL`

// Concerns counts them. It reads every open subscription: for a look now and then.
func (s *Store) Concerns(ctx context.Context) (Concerns, error) {
	rows, err := s.pool.Query(ctx, concernsSQL)
	if err != nil {
		return Concerns{}, fmt.Errorf("count what is late: %w", err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Concerns])
	if err != nil {
		return Concerns{}, fmt.Errorf("count what is late: %w", err)
	}
	return found, nil
}
