package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/subscriptions"
)

// overduePause is how long after a look-up an overdue subscription is asked for again:
// Stripe may need a while itself to begin the next period.
const overduePause = 10 * time.Minute

// askOverdue asks for subscriptions whose period is over without news of the next one.
func (s *Sync) askOverdue(ctx context.Context) error {
	overdue, err := s.store.Overdue(ctx, subscriptions.MaxPageSize)
	if err != nil {
		return err
	}
	byWorld := map[world][]string{}
	for _, row := range overdue {
		if row.Source == subscriptions.SourceStripe && !row.TestClock && s.pages.api.serves(row.Livemode) {
			w := world{account: row.Account, livemode: row.Livemode}
			byWorld[w] = append(byWorld[w], row.SourceID)
		}
	}
	for w, ids := range byWorld {
		due, err := s.ledger.notAskedSince(ctx, w, ids, s.now().UTC().Add(-overduePause))
		if err != nil {
			return err
		}
		if err := s.lookUpOverdue(ctx, w, due); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sync) lookUpOverdue(ctx context.Context, w world, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	position, err := s.position(ctx, w)
	if err != nil {
		return err
	}
	report := newSyncReport()
	c := comparison{Sync: s, world: w, position: position, report: &report}
	return c.lookUp(ctx, ids, RepairOverdue)
}

func (l *Ledger) notAskedSince(ctx context.Context, w world, ids []string, since time.Time) ([]string, error) {
	args := w.args()
	args["ids"], args["since"] = ids, since
	rows, err := l.pool.Query(ctx, `SELECT w.id FROM unnest(@ids::text[]) AS w (id)
		WHERE NOT EXISTS (SELECT FROM stripe_sync_requests r WHERE r.account = @account AND r.livemode = @livemode
			AND r.subscription_id = w.id AND r.requested_at > @since)`, args)
	if err != nil {
		return nil, fmt.Errorf("find overdue subscriptions to ask for: %w", err)
	}
	due, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("find overdue subscriptions to ask for: %w", err)
	}
	return due, nil
}
