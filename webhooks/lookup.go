package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

// finding is a subscription as it was found, and what belongs to it.
type finding struct {
	Subscription subscriptionObject
	Invoices     []invoiceObject
	// Sessions are the purchases that led to it, as far as they are needed and known.
	Sessions []checkoutSession
	fetched  bool
}

// errUnseen means that no payload has shown the subscription itself yet.
var errUnseen = fmt.Errorf("no event has shown the subscription itself yet: it is looked up when one does")

// find looks a subscription up: at Stripe where there is a key for it, else in what was
// delivered.
func (w *Worker) find(ctx context.Context, key syncKey) (finding, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	if !w.api.serves(key.Livemode) {
		w.tally.folded.Add(1)
		return w.fold(ctx, key)
	}
	w.tally.fetched.Add(1)
	f := finding{fetched: true}
	var err error
	if f.Subscription, err = w.api.subscription(ctx, key); err != nil {
		return finding{}, err
	}
	f.Invoices, err = w.api.invoicesOf(ctx, key, f.Subscription)
	return f, err
}

// subscription is a subscription with all of its items.
func (a *API) subscription(ctx context.Context, key syncKey) (subscriptionObject, error) {
	raw, err := a.get(ctx, call{account: key.Account, path: "/v1/subscriptions/" + url.PathEscape(key.SubscriptionID)})
	if err != nil {
		return subscriptionObject{}, err
	}
	o, err := decodeSubscription(raw)
	if err != nil || !o.MoreItems {
		return o, err
	}
	raw, err = a.whole(ctx, raw, "items", call{
		account: key.Account, path: "/v1/subscription_items", query: url.Values{"subscription": {o.ID}},
	})
	if err != nil {
		return subscriptionObject{}, err
	}
	return decodeSubscription(raw)
}

// lookBack is how much earlier than its period an invoice may be made that bills it.
const lookBack = 24 * time.Hour

// invoicesOf are all invoices that may bill the period which a subscription is in: those
// made since it began. Older ones are of periods before, whose rows are closed.
func (a *API) invoicesOf(ctx context.Context, key syncKey, o subscriptionObject) ([]invoiceObject, error) {
	since := o.Items[0].Period.Start
	for _, item := range o.Items {
		if item.Period.Start.Before(since) {
			since = item.Period.Start
		}
	}
	var invoices []invoiceObject
	err := a.list(ctx, call{account: key.Account, path: "/v1/invoices", query: url.Values{
		"subscription": {o.ID}, "created[gte]": {strconv.FormatInt(since.Add(-lookBack).Unix(), 10)},
	}}, func(raw json.RawMessage) (bool, error) {
		invoice, err := a.wholeInvoice(ctx, key.Account, raw)
		invoices = append(invoices, invoice)
		return true, err
	})
	return invoices, err
}

// wholeInvoice is an invoice with all of its lines.
func (a *API) wholeInvoice(ctx context.Context, account string, raw json.RawMessage) (invoiceObject, error) {
	invoice, err := decodeInvoice(raw)
	if err != nil || !invoice.MoreLines {
		return invoice, err
	}
	raw, err = a.whole(ctx, raw, "lines", call{account: account, path: "/v1/invoices/" + url.PathEscape(invoice.ID) + "/lines"})
	if err != nil {
		return invoiceObject{}, err
	}
	return decodeInvoice(raw)
}

// whole is an object with all that a list in it has, which it showed in part.
func (a *API) whole(ctx context.Context, raw json.RawMessage, field string, c call) (json.RawMessage, error) {
	var all []json.RawMessage
	err := a.list(ctx, c, func(element json.RawMessage) (bool, error) {
		all = append(all, element)
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	o, err := parseObject(field, raw)
	if err != nil {
		return nil, err
	}
	if o.fields[field], err = json.Marshal(map[string]any{"data": all}); err != nil {
		return nil, fmt.Errorf("put %s together: %w", field, err)
	}
	return json.Marshal(o.fields)
}

// sessionsOf are the purchases that led to a subscription.
func (a *API) sessionsOf(ctx context.Context, key syncKey) ([]checkoutSession, error) {
	var sessions []checkoutSession
	err := a.list(ctx, call{account: key.Account, path: "/v1/checkout/sessions", query: url.Values{
		"subscription": {key.SubscriptionID},
	}}, func(raw json.RawMessage) (bool, error) {
		session, err := decodeSession(raw)
		sessions = append(sessions, session)
		return true, err
	})
	return sessions, err
}

// keyOf is how subscriptions names a subscription of Stripe's.
func (k syncKey) keyOf() subscriptions.SubscriptionKey {
	return subscriptions.SubscriptionKey{
		Source: subscriptions.SourceStripe, Account: k.Account, Livemode: k.Livemode, SourceID: k.SubscriptionID,
	}
}
