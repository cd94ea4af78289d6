package usage

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// KeepRequests is how long the answers under idempotency keys are kept.
	KeepRequests = 24 * time.Hour
	// pruneEvery is how often old ones are looked for.
	pruneEvery = 10 * time.Minute
	// pruneTogether bounds a statement, so that none holds its rows for long.
	pruneTogether = 1000
)

// Run forgets the answers that are older than KeepRequests, at once and then every ten
// minutes, until ctx ends, and returns nil. What could not be forgotten is logged and
// left for the next time. Any number of processes may run it; one is enough.
func (c *Counters) Run(ctx context.Context) error {
	again := time.NewTicker(pruneEvery)
	defer again.Stop()
	for {
		if err := c.pruneAll(ctx); err != nil && ctx.Err() == nil {
			c.options.Log.WarnContext(ctx, "old idempotency keys are not forgotten", "error", err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *Counters) pruneAll(ctx context.Context) error {
	before := c.options.Now().Add(-KeepRequests)
	for {
		n, err := c.Prune(ctx, before, pruneTogether)
		if err != nil || n < pruneTogether {
			return err
		}
	}
}

// Prune forgets up to limit requests that were made before the instant, and returns how
// many. A request that is repeated after that counts again.
func (c *Counters) Prune(ctx context.Context, before time.Time, limit int) (int64, error) {
	tag, err := c.pool.Exec(ctx, `
		DELETE FROM usage_requests WHERE ctid = ANY(ARRAY(
			SELECT ctid FROM usage_requests WHERE created_at < @before ORDER BY created_at LIMIT @limit FOR UPDATE SKIP LOCKED))`,
		pgx.NamedArgs{"before": before, "limit": limit})
	if err != nil {
		return 0, fmt.Errorf("forget old requests: %w", err)
	}
	return tag.RowsAffected(), nil
}
