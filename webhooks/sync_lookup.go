package webhooks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	causeSync = "sync"
	// shortestLook and longestLook bound how often look-ups are looked after.
	shortestLook = 5 * time.Millisecond
	longestLook  = 500 * time.Millisecond
)

// lookUp asks for look-ups and notes how far the comparison is, in one transaction, so
// that an interruption loses none; waits until they are over; and counts what they
// changed. A cause that is given counts for all of them.
func (c *comparison) lookUp(ctx context.Context, ids []string, cause string) error {
	before, err := c.ledger.held(ctx, c.world, ids)
	if err != nil {
		return err
	}
	asked := c.now()
	err = pgx.BeginFunc(ctx, c.ledger.pool, func(tx pgx.Tx) error {
		if err := askAll(ctx, tx, asking{c.world, ids, causeSync, asked.UTC()}); err != nil {
			return err
		}
		return writeCursor(ctx, tx, c.world, syncCursor, c.position)
	})
	if err != nil {
		return err
	}
	c.report.Asked += len(ids)
	if len(ids) > 0 {
		c.ledger.wake()
	}
	if err := c.settled(ctx, ids); err != nil {
		return err
	}
	after, err := c.ledger.held(ctx, c.world, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		c.count(ctx, before[id], after[id], cause)
	}
	if c.options.Rate > 0 {
		rest(ctx, time.Duration(len(ids))*time.Second/time.Duration(c.options.Rate)-c.now().Sub(asked))
	}
	return ctx.Err()
}

// count says what a look-up changed, if anything.
func (c *comparison) count(ctx context.Context, before, after held, cause string) {
	switch {
	case after.Pending:
		c.report.Late++
		return
	case before.Trace == after.Trace:
		return
	case c.first && !before.exists():
		c.report.Imported++
		return
	case cause != "":
	case before.exists():
		cause = RepairChanged
	default:
		cause = RepairMissing
	}
	c.report.Repaired[cause]++
	c.tally.repaired(cause)
	c.log.WarnContext(ctx, "subscription was not as stripe has it and is repaired",
		"subscription_id", after.ID, "account", c.world.account, "cause", cause, "was", before.Status, "is", after.Status)
}

// asking is look-ups to ask for.
type asking struct {
	world world
	ids   []string
	cause string
	at    time.Time
}

// askAll asks for look-ups, always in the same order: so do others.
func askAll(ctx context.Context, tx pgx.Tx, a asking) error {
	if len(a.ids) == 0 {
		return nil
	}
	args := a.world.args()
	ids := slices.Clone(a.ids)
	slices.Sort(ids)
	args["ids"], args["cause"], args["at"] = ids, a.cause, a.at
	_, err := tx.Exec(ctx, `INSERT INTO stripe_sync_requests AS r (account, livemode, subscription_id, requested_at, cause, next_attempt_at)
		SELECT @account, @livemode, w.id, @at, @cause, @at FROM unnest(@ids::text[]) AS w (id) ORDER BY w.id
		ON CONFLICT (account, livemode, subscription_id) DO UPDATE SET `+askAgainSQL, args)
	if err == nil {
		_, err = tx.Exec(ctx, `SELECT pg_notify('`+wakeChannel+`', '')`)
	}
	if err != nil {
		return fmt.Errorf("ask for %d subscriptions: %w", len(ids), err)
	}
	return nil
}

// settled waits until look-ups are over, or make no progress any more: those are tried
// again without anybody waiting.
func (c *comparison) settled(ctx context.Context, ids []string) error {
	look, progressed, before := shortestLook, c.now(), len(ids)+1
	for {
		waiting, fault, err := c.ledger.unsettled(ctx, c.world, ids)
		if err != nil {
			return err
		}
		if waiting < before {
			before, progressed, look = waiting, c.now(), shortestLook
			c.options.Progress(SyncProgress{
				Listed: c.report.Listed, Expected: c.expected, Asked: c.report.Asked, Waiting: waiting, LastError: fault,
			})
		}
		if waiting == 0 || c.now().Sub(progressed) > c.options.Patience {
			return nil
		}
		if !rest(ctx, look) {
			return ctx.Err()
		}
		look = min(look*2, longestLook)
	}
}

// unsettled counts the look-ups that are not over, and says why one of them is not.
func (l *Ledger) unsettled(ctx context.Context, w world, ids []string) (n int, fault string, err error) {
	if len(ids) == 0 {
		return 0, "", nil
	}
	args := w.args()
	args["ids"] = ids
	rows, err := l.pool.Query(ctx, `SELECT count(*), coalesce(max(last_error), '') FROM stripe_sync_requests
		WHERE account = @account AND livemode = @livemode AND subscription_id = ANY(@ids)
			AND synced_generation < generation`, args)
	if err != nil {
		return 0, "", fmt.Errorf("count look-ups under way: %w", err)
	}
	_, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, row.Scan(&n, &fault)
	})
	if err != nil {
		return 0, "", fmt.Errorf("count look-ups under way: %w", err)
	}
	return n, fault, nil
}
