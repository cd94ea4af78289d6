package webhooks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/subscriptions"
)

// payload is an event of a subscription as it was delivered.
type payload struct {
	row              int64
	kind, objectKind string
	state            string
	created          time.Time
	body             []byte
}

// sight is what one event showed of a subscription: how it was after it, and before it
// if it says so.
type sight struct {
	kind    string
	created time.Time
	after   subscriptionObject
	before  *subscriptionObject
}

// fold puts a subscription together from what was delivered. It is as new as the newest
// of the events that have arrived; what none of them tells is not known.
func (w *Worker) fold(ctx context.Context, key syncKey) (finding, error) {
	payloads, err := w.payloads(ctx, key)
	if err != nil {
		return finding{}, err
	}
	t := told{invoices: make(map[string]invoiceObject)}
	for _, p := range payloads {
		if err := t.take(p); err != nil {
			if err := w.park(ctx, p, err); err != nil {
				return finding{}, err
			}
		}
	}
	return t.finding()
}

// told is what the payloads of a subscription say together.
type told struct {
	sights   []sight
	invoices map[string]invoiceObject
	// deleted is when its customer was, nil if it was not.
	deleted *time.Time
	// broken is why a payload of the subscription itself could not be read.
	broken error
}

// take adds a payload. An error says why it cannot be read.
func (t *told) take(p payload) error {
	switch p.objectKind {
	case "subscription":
		seen, err := seeSubscription(p)
		if err != nil {
			t.broken = err
			return err
		}
		t.sights = append(t.sights, seen)
	case "invoice":
		return seeInvoice(p, t.invoices)
	case "customer":
		t.deleted = &p.created
	}
	return nil
}

func (t *told) finding() (finding, error) {
	switch {
	case len(t.sights) == 0 && t.broken != nil:
		return finding{}, t.broken
	case len(t.sights) == 0:
		return finding{}, errUnseen
	}
	f := finding{Subscription: newest(t.sights)}
	if t.deleted != nil && !f.Subscription.ended() {
		f.Subscription.Status, f.Subscription.EndedAt = subscriptions.StatusCanceled, t.deleted
	}
	for _, invoice := range t.invoices {
		f.Invoices = append(f.Invoices, invoice)
	}
	return f, nil
}

func (w *Worker) payloads(ctx context.Context, key syncKey) ([]payload, error) {
	rows, err := w.ledger.pool.Query(ctx, `SELECT e.id, e.type, e.object_kind, e.state, coalesce(e.created, e.received_at), e.api_version, e.body
		FROM stripe_event_subscriptions c JOIN stripe_events e ON e.id = c.event
		WHERE c.subscription_id = @subscription AND e.account = @account AND e.livemode = @livemode
			AND e.object_kind IN ('subscription', 'invoice', 'customer')
		ORDER BY e.id`, key.args())
	if err != nil {
		return nil, fmt.Errorf("read events of subscription %s: %w", key.SubscriptionID, err)
	}
	payloads, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p payload, err error) {
		var version string
		err = row.Scan(&p.row, &p.kind, &p.objectKind, &p.state, &p.created, &version, &p.body)
		w.news.met(version)
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("read events of subscription %s: %w", key.SubscriptionID, err)
	}
	return payloads, nil
}

// park parks an event that cannot be read; the others still count.
func (w *Worker) park(ctx context.Context, p payload, why error) error {
	if p.state == StateParked {
		return nil
	}
	w.tally.parked.Add(1)
	w.log.WarnContext(ctx, "stripe event cannot be read and is parked", "event_type", p.kind, "error", why)
	return w.ledger.setState(ctx, w.ledger.pool, p.row, verdict{state: StateParked, reason: tidy(why.Error()), at: w.now().UTC()})
}

func seeSubscription(p payload) (sight, error) {
	event, err := parseObject("", p.body)
	if err != nil {
		return sight{}, err
	}
	data := event.object("data")
	s := sight{kind: p.kind, created: p.created}
	if s.after, err = decodeSubscription(data.fields["object"]); err != nil {
		return sight{}, err
	}
	if previous := data.object("previous_attributes"); len(previous.fields) > 0 {
		raw, err := json.Marshal(overlay(data.object("object"), previous))
		if err != nil {
			return sight{}, fmt.Errorf("put together how a subscription was: %w", err)
		}
		// How it was is a help to order events, and not needed.
		if before, err := decodeSubscription(raw); err == nil {
			s.before = &before
		}
	}
	return s, nil
}

// overlay is an object as it was before what it tells of its previous attributes: of an
// object inside only what changed is told, a list is told whole.
func overlay(object, previous jsonObject) map[string]json.RawMessage {
	was := make(map[string]json.RawMessage, len(object.fields))
	for name, value := range object.fields {
		was[name] = value
	}
	for name, value := range previous.fields {
		inner, now := previous.object(name), object.object(name)
		if len(inner.fields) > 0 && len(now.fields) > 0 {
			if merged, err := json.Marshal(overlay(now, inner)); err == nil {
				value = merged
			}
		}
		was[name] = value
	}
	return was
}

func seeInvoice(p payload, known map[string]invoiceObject) error {
	event, err := parseObject("", p.body)
	if err != nil {
		return err
	}
	invoice, err := decodeInvoice(event.object("data").fields["object"])
	if err != nil {
		return err
	}
	if is, there := known[invoice.ID]; !there || invoice.follows(is) {
		known[invoice.ID] = invoice
	}
	return nil
}

// follows reports whether an invoice as it was shown once came after another showing of
// it. Its status only goes on, and so does the count of attempts.
func (i invoiceObject) follows(was invoiceObject) bool {
	return cmp.Or(cmp.Compare(i.progress(), was.progress()), cmp.Compare(i.Attempts, was.Attempts)) > 0
}

func (i invoiceObject) progress() int {
	return slices.Index([]string{invoiceDraft, invoiceOpen, invoiceUncollectible, invoicePaid, invoiceVoid}, i.Status)
}
