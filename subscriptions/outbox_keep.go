package subscriptions

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// outboxChannel is where a trigger notifies of new rows.
const outboxChannel = "headroom_outbox"

// trimBatch is how many rows a statement of Trim deletes.
const trimBatch = 1000

// Listen calls wake as soon as it listens, because of what was written before,
// and then at each commit that wrote news. It returns when ctx ends or the
// connection is lost. It has a connection of its own beside the pool's.
//
// A pooler that gives each transaction another session, such as PgBouncer in that
// mode, lets nothing be heard: Relay has to be called from time to time anyway.
func (o *Outbox) Listen(ctx context.Context, wake func()) error {
	pooled, err := o.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("listen to the outbox: %w", err)
	}
	session := pooled.Hijack()
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = session.Close(ending)
	}()
	if _, err := session.Exec(ctx, `LISTEN `+outboxChannel); err != nil {
		return fmt.Errorf("listen to the outbox: %w", err)
	}
	for {
		wake()
		if _, err := session.WaitForNotification(ctx); err != nil {
			return fmt.Errorf("listen to the outbox: %w", err)
		}
	}
}

// Trim deletes news that were published longer ago than keep, and returns how
// many. It deletes them in batches, each a transaction of its own; an error, or
// the end of ctx, leaves the rest for another call.
func (o *Outbox) Trim(ctx context.Context, keep time.Duration) (int64, error) {
	for deleted := int64(0); ; {
		done, err := o.pool.Exec(ctx, `DELETE FROM outbox WHERE id IN (
			SELECT id FROM outbox WHERE published_at < clock_timestamp() - @keep::interval
			ORDER BY published_at LIMIT @batch FOR UPDATE SKIP LOCKED)`,
			pgx.NamedArgs{"keep": keep, "batch": trimBatch})
		deleted += done.RowsAffected()
		if err != nil {
			return deleted, fmt.Errorf("trim the outbox: %w", err)
		}
		if done.RowsAffected() < trimBatch {
			return deleted, nil
		}
	}
}
