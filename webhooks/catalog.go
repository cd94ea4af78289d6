package webhooks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/subscriptions"
)

// unresolved begins the reason of an event that waits for its price to come into the
// catalog.
const unresolved = "plan_unresolved: "

// catalog is the prices of the catalog in force, read when it is another one.
type catalog struct {
	store *subscriptions.Store

	mu       sync.Mutex
	known    bool
	revision int64
	prices   priceLookup
}

// now is the prices in force. It reports whether they differ from those of the call
// before, or are the first.
func (c *catalog) now(ctx context.Context) (prices priceLookup, fresh bool, err error) {
	revision, err := c.store.CatalogRevision(ctx)
	if err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && c.revision >= revision {
		return c.prices, false, nil
	}
	plans, err := c.store.Plans(ctx)
	if err != nil {
		return nil, false, err
	}
	// What was applied meanwhile may be in the plans already; it is read once more then.
	c.prices, c.revision, c.known = pricesOf(plans), revision, true
	return c.prices, true, nil
}

// reconsider asks again for all subscriptions without a plan when there is another
// catalog: a price of theirs may be in it.
func (w *Worker) reconsider(ctx context.Context) error {
	revision, err := w.store.CatalogRevision(ctx)
	if err != nil {
		return err
	}
	if w.considered.Load() == revision+1 {
		return nil
	}
	err = pgx.BeginFunc(ctx, w.ledger.pool, func(tx pgx.Tx) error { return askUnresolved(ctx, tx, w.now().UTC()) })
	if err == nil {
		w.considered.Store(revision + 1)
	}
	return err
}

func askUnresolved(ctx context.Context, tx pgx.Tx, now time.Time) error {
	at := pgx.NamedArgs{"at": now}
	for _, sql := range []string{
		`UPDATE stripe_events SET state = '` + StateReceived + `', reason = '' WHERE id IN (
			SELECT id FROM stripe_events WHERE state = '` + StateParked + `' AND reason LIKE '` + unresolved + `%' ORDER BY id FOR UPDATE)`,
		`WITH waiting AS (
			SELECT r.account, r.livemode, r.subscription_id FROM stripe_sync_requests r
			WHERE r.outcome = '` + StateParked + `' AND r.reason LIKE '` + unresolved + `%' OR EXISTS (
				SELECT FROM subscriptions s WHERE s.source = 'stripe' AND s.closed_at IS NULL AND s.plan_unresolved
					AND (s.account, s.livemode, s.source_id) = (r.account, r.livemode, r.subscription_id))
			ORDER BY r.subscription_id FOR UPDATE)
		UPDATE stripe_sync_requests r SET generation = r.generation + 1, requested_at = @at, cause = 'catalog',
			next_attempt_at = CASE WHEN r.synced_generation < r.generation THEN r.next_attempt_at ELSE @at END
		FROM waiting w WHERE (r.account, r.livemode, r.subscription_id) = (w.account, w.livemode, w.subscription_id)`,
	} {
		if _, err := tx.Exec(ctx, sql, at); err != nil {
			return fmt.Errorf("ask for subscriptions whose plan is unknown: %w", err)
		}
	}
	return nil
}
