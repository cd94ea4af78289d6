package webhooks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/subscriptions"
)

// seenSubscription is one as Stripe lists it; object is nil if it cannot be read.
type seenSubscription struct {
	id     string
	object *subscriptionObject
}

// held is what is known of a subscription here: its last look-up and its newest row. A
// row that is not there has no status.
type held struct {
	ID string
	// Asked is whether a look-up was ever asked for, Pending whether one is under way,
	// Outcome what the last came to.
	Asked, Pending bool
	Outcome        string
	Status         string
	PaymentState   string
	PlanKey        string
	Quantity       int32
	Start, End     time.Time
	CancelAt       *time.Time
	Closed         bool
	PlanUnresolved bool
	// Trace changes with whatever a look-up writes about it.
	Trace string
}

func (h held) exists() bool { return h.Status != "" }

const heldSQL = `SELECT w.id, r.generation IS NOT NULL, coalesce(r.synced_generation < r.generation, false), coalesce(r.outcome, ''),
		coalesce(s.status, ''), coalesce(s.payment_state, ''), coalesce(s.plan_key, ''), coalesce(s.quantity, 0),
		coalesce(s.billing_start, 'epoch'), coalesce(s.billing_end, 'epoch'), s.cancel_at,
		s.closed_at IS NOT NULL, coalesce(s.plan_unresolved, false),
		coalesce(concat_ws(' ', s.id, s.status, s.payment_state, s.plan_key, s.quantity, s.period_end, s.billing_end,
			s.cancel_at, s.ended_at, s.closed_at, s.plan_unresolved, s.disputed), '')
	FROM unnest(@ids::text[]) AS w (id)
	LEFT JOIN stripe_sync_requests r ON r.account = @account AND r.livemode = @livemode AND r.subscription_id = w.id
	LEFT JOIN LATERAL (SELECT * FROM subscriptions
		WHERE source = 'stripe' AND account = @account AND livemode = @livemode AND source_id = w.id
		ORDER BY period_start DESC LIMIT 1) s ON true`

// held reads what is known of subscriptions, by id.
func (l *Ledger) held(ctx context.Context, w world, ids []string) (map[string]held, error) {
	args := w.args()
	args["ids"] = ids
	rows, err := l.pool.Query(ctx, heldSQL, args)
	if err != nil {
		return nil, fmt.Errorf("read what is known of subscriptions: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[held])
	if err != nil {
		return nil, fmt.Errorf("read what is known of subscriptions: %w", err)
	}
	known := make(map[string]held, len(found))
	for _, h := range found {
		known[h.ID] = h
	}
	return known, nil
}

// suspects are those of a page that have to be looked up. It reports whether one differs,
// and not only may.
func (c *comparison) suspects(ctx context.Context, page []seenSubscription) (ids []string, differ bool, err error) {
	prices, _, err := c.catalog.now(ctx)
	if err != nil {
		return nil, false, err
	}
	all := make([]string, 0, len(page))
	for _, s := range page {
		all = append(all, s.id)
	}
	known, err := c.ledger.held(ctx, c.world, all)
	if err != nil {
		return nil, false, err
	}
	for _, s := range page {
		h := known[s.id]
		if s.object == nil || h.Pending || h.unpaid() {
			ids = append(ids, s.id)
			continue
		}
		if differs(c.state(*s.object, prices), h) {
			ids, differ = append(ids, s.id), true
		}
	}
	return ids, differ, nil
}

// listedState is what a listed subscription says of itself.
type listedState struct {
	subscriptions.SourceState
	ended bool
	// named is whether its metadata say whose it is.
	named bool
}

func (c *comparison) state(o subscriptionObject, prices priceLookup) listedState {
	_, named := o.Metadata[workspaceField]
	s := listedState{ended: o.ended(), named: named}
	snapshot, err := snapshotOf(sighting{Account: c.world.account, Subscription: o, Plans: prices, Mode: c.ledger.mode})
	if err == nil {
		s.SourceState = snapshot.State
	}
	return s
}

// unpaid reports whether a period is not known to be paid. Invoices are in no list of
// subscriptions, so that it has to be looked up.
func (h held) unpaid() bool {
	return !h.Closed && (h.PaymentState == subscriptions.PaymentPending || h.PaymentState == subscriptions.PaymentFailed)
}

// differs reports whether what is known of a subscription is not what it is.
func differs(is listedState, h held) bool {
	switch {
	case !h.exists() && is.ended:
		return false // nothing of it counts any more
	case !h.Asked:
		return true
	case !h.exists() && h.Outcome == StateUnmapped:
		return is.named // whose it is was not known, and is now
	case !h.exists():
		return h.Outcome != StateDone || entitles(is.Status)
	case is.ended || h.Closed:
		return is.ended != h.Closed
	}
	return is.Status != h.Status || is.Quantity != h.Quantity || is.PlanUnresolved != h.PlanUnresolved ||
		!is.PlanUnresolved && is.PlanKey != h.PlanKey ||
		!is.Period.Start.Equal(h.Start) || !is.Period.End.Equal(h.End) || !sameInstant(is.CancelAt, h.CancelAt)
}

func entitles(status string) bool {
	return slices.Contains([]string{
		subscriptions.StatusActive, subscriptions.StatusTrialing, subscriptions.StatusPastDue,
	}, status)
}

func sameInstant(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}
