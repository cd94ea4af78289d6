package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// WaitingSubscription is one that waits for a person: whose it is is not known, or it
// cannot be understood.
type WaitingSubscription struct {
	SubscriptionID string    `json:"subscription_id"`
	CustomerID     string    `json:"customer_id"`
	Account        string    `json:"account"`
	Livemode       bool      `json:"livemode"`
	Outcome        string    `json:"outcome"`
	Reason         string    `json:"reason"`
	RequestedAt    time.Time `json:"requested_at"`
}

// Waiting lists the subscriptions that wait for a person, those without a workspace
// first, up to limit.
func (l *Ledger) Waiting(ctx context.Context, limit int) ([]WaitingSubscription, error) {
	rows, err := l.pool.Query(ctx, `SELECT subscription_id, customer_id, account, livemode, outcome, reason, requested_at
		FROM stripe_sync_requests WHERE outcome IN ('`+StateUnmapped+`', '`+StateParked+`', '`+StateDead+`')
		ORDER BY outcome DESC, account, livemode, subscription_id LIMIT @limit`, pgx.NamedArgs{"limit": limit})
	if err != nil {
		return nil, fmt.Errorf("list subscriptions that wait: %w", err)
	}
	waiting, err := pgx.CollectRows(rows, pgx.RowToStructByPos[WaitingSubscription])
	if err != nil {
		return nil, fmt.Errorf("list subscriptions that wait: %w", err)
	}
	for i := range waiting {
		waiting[i].RequestedAt = waiting[i].RequestedAt.UTC()
	}
	return waiting, nil
}

// Concerns are what is not as it should be now, one figure for each way of silently going
// wrong. All are to be 0 but for a moment.
type Concerns struct {
	// Received, Unmapped, Parked and Dead are events in these states, and what follows is
	// how long the oldest of them is known.
	Received, Unmapped, Parked, Dead int64
	OldestUnmapped, OldestParked     time.Duration
	// Backlog are look-ups that are not over, OldestBacklog how long the oldest of them
	// was asked for.
	Backlog       int64
	OldestBacklog time.Duration
	// UnmappedSubscriptions, ParkedSubscriptions and DeadSubscriptions wait for a person.
	UnmappedSubscriptions, ParkedSubscriptions, DeadSubscriptions int64
	// Unresolved are rows none of whose prices is in the catalog, Several the workspaces
	// with several live subscriptions of Stripe's, who may pay twice, Overdue the
	// rows whose period is over without news, and Disputed those whose money a dispute
	// has withdrawn.
	Unresolved, Several, Overdue, Disputed int64
}

// severalSQL counts from an index that has these conditions word for word.
const severalSQL = `SELECT count(*) FROM (SELECT FROM subscriptions
		WHERE closed_at IS NULL AND source = 'stripe' AND status IN ('active', 'trialing', 'past_due')
		GROUP BY workspace_id HAVING count(*) > 1) several`

const concernsSQL = `SELECT
	(SELECT count(*) FROM stripe_events WHERE state = 'received'),
	(SELECT count(*) FROM stripe_events WHERE state = 'unmapped'),
	(SELECT count(*) FROM stripe_events WHERE state = 'parked'),
	(SELECT count(*) FROM stripe_events WHERE state = 'dead'),
	coalesce(@now::timestamptz - (SELECT received_at FROM stripe_events WHERE state = 'unmapped' ORDER BY id LIMIT 1), '0'),
	coalesce(@now::timestamptz - (SELECT received_at FROM stripe_events WHERE state = 'parked' ORDER BY id LIMIT 1), '0'),
	(SELECT count(*) FROM stripe_sync_requests WHERE synced_generation < generation),
	coalesce(@now::timestamptz - (SELECT min(requested_at) FROM stripe_sync_requests WHERE synced_generation < generation), '0'),
	(SELECT count(*) FROM stripe_sync_requests WHERE outcome = 'unmapped'),
	(SELECT count(*) FROM stripe_sync_requests WHERE outcome = 'parked'),
	(SELECT count(*) FROM stripe_sync_requests WHERE outcome = 'dead'),
	(SELECT count(*) FROM subscriptions WHERE closed_at IS NULL AND plan_unresolved),
	(` + severalSQL + `),
	(SELECT count(*) FROM subscriptions WHERE closed_at IS NULL AND overdue_since IS NOT NULL),
	(SELECT count(*) FROM subscriptions WHERE closed_at IS NULL AND disputed)`

// Concerns counts what is not as it should be. It counts no events that are settled, of
// which there may be millions.
func (l *Ledger) Concerns(ctx context.Context, now time.Time) (Concerns, error) {
	rows, err := l.pool.Query(ctx, concernsSQL, pgx.NamedArgs{"now": now})
	if err != nil {
		return Concerns{}, fmt.Errorf("count what waits: %w", err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (c Concerns, err error) {
		return c, row.Scan(&c.Received, &c.Unmapped, &c.Parked, &c.Dead, &c.OldestUnmapped, &c.OldestParked,
			&c.Backlog, &c.OldestBacklog, &c.UnmappedSubscriptions, &c.ParkedSubscriptions, &c.DeadSubscriptions,
			&c.Unresolved, &c.Several, &c.Overdue, &c.Disputed)
	})
	if err != nil {
		return Concerns{}, fmt.Errorf("count what waits: %w", err)
	}
	return c, nil
}

// Backlog is how many look-ups are not over, and how long the oldest of them was asked
// for.
func (l *Ledger) Backlog(ctx context.Context, now time.Time) (lookups int64, oldest time.Duration, err error) {
	rows, err := l.pool.Query(ctx, `SELECT count(*), coalesce(@now::timestamptz - min(requested_at), '0')
		FROM stripe_sync_requests WHERE synced_generation < generation`, pgx.NamedArgs{"now": now})
	if err != nil {
		return 0, 0, fmt.Errorf("count look-ups that wait: %w", err)
	}
	_, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, row.Scan(&lookups, &oldest)
	})
	if err != nil {
		return 0, 0, fmt.Errorf("count look-ups that wait: %w", err)
	}
	return lookups, oldest, nil
}
