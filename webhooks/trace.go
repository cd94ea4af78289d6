package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// trace finds the subscriptions that an object is about:
//
//	charge, refund   the charge ─► its invoice ─► its subscription
//	dispute          the dispute ─► the charge ─► …
//	customer         those that are known of it, or that Stripe lists
//
// With a key for it Stripe is asked at each step; else what was delivered has to say.
func (w *Worker) trace(ctx context.Context, e objectEvent) (trace, error) {
	switch {
	case e.kind == "customer.deleted":
		return w.traceCustomer(ctx, e)
	case strings.HasPrefix(e.kind, "charge.dispute."):
		return w.traceDispute(ctx, e)
	case e.kind == "charge.refunded":
		charge, err := decodeCharge(e.object)
		if err != nil {
			return trace{}, err
		}
		return w.traceCharge(ctx, e, charge)
	default:
		refund, err := decodeRefund(e.object)
		if err != nil {
			return trace{}, err
		}
		if refund.ChargeID == "" {
			return trace{nothing: "the refund is of no charge"}, nil
		}
		return w.traceCharge(ctx, e, chargeObject{ID: refund.ChargeID})
	}
}

func (w *Worker) traceCharge(ctx context.Context, e objectEvent, told chargeObject) (trace, error) {
	charge, err := w.charge(ctx, e.key, told)
	if err != nil {
		return trace{}, err
	}
	t, invoice, err := w.traceInvoice(ctx, e.key, charge)
	if err == nil && charge.AmountRefunded > 0 {
		t.claim = &claim{Kind: claimRefund, ID: charge.ID, InvoiceID: invoice, Amount: charge.AmountRefunded}
	}
	return t, err
}

func (w *Worker) traceDispute(ctx context.Context, e objectEvent) (trace, error) {
	raw := e.object
	dispute, err := decodeDispute(raw)
	if err != nil {
		return trace{}, err
	}
	if w.api.serves(e.key.Livemode) {
		if raw, err = w.api.get(ctx, call{account: e.key.Account, path: "/v1/disputes/" + url.PathEscape(dispute.ID)}); err != nil {
			return trace{}, err
		}
		if dispute, err = decodeDispute(raw); err != nil {
			return trace{}, err
		}
	}
	charge, err := w.charge(ctx, e.key, chargeObject{ID: dispute.ChargeID})
	if err != nil {
		return trace{}, err
	}
	t, invoice, err := w.traceInvoice(ctx, e.key, charge)
	if err != nil {
		return trace{}, err
	}
	c := dispute.claim(invoice)
	c.Told = !w.api.serves(e.key.Livemode)
	t.claim = &c
	return t, nil
}

// charge is a charge with its invoice, of which only the API or an old version tells.
func (w *Worker) charge(ctx context.Context, key syncKey, told chargeObject) (chargeObject, error) {
	if w.api.serves(key.Livemode) {
		raw, err := w.api.get(ctx, call{account: key.Account, path: "/v1/charges/" + url.PathEscape(told.ID), version: chargeVersion})
		if err != nil {
			return chargeObject{}, err
		}
		return decodeCharge(raw)
	}
	if told.InvoiceID != "" {
		return told, nil
	}
	stored, err := w.storedCharge(ctx, key, told.ID)
	if err != nil {
		return chargeObject{}, err
	}
	if stored.InvoiceID == "" {
		return chargeObject{}, errUntold
	}
	told.InvoiceID = stored.InvoiceID
	return told, nil
}

// storedCharge is a charge as an event told of it that named its invoice.
func (w *Worker) storedCharge(ctx context.Context, key syncKey, id string) (chargeObject, error) {
	args := key.args()
	args["id"] = id
	rows, err := w.ledger.pool.Query(ctx, `SELECT body FROM stripe_events
		WHERE object_kind = 'charge' AND object_id = @id AND account = @account AND livemode = @livemode`, args)
	if err != nil {
		return chargeObject{}, fmt.Errorf("read events of charge %s: %w", id, err)
	}
	bodies, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return chargeObject{}, fmt.Errorf("read events of charge %s: %w", id, err)
	}
	for _, body := range bodies {
		event, err := parseObject("", body)
		if err != nil {
			continue // parked when it arrived
		}
		charge, err := decodeCharge(event.object("data").fields["object"])
		if err == nil && charge.InvoiceID != "" {
			return charge, nil
		}
	}
	return chargeObject{}, nil
}

// traceInvoice leads from a charge over its invoice to the subscription.
func (w *Worker) traceInvoice(ctx context.Context, key syncKey, charge chargeObject) (t trace, invoice string, err error) {
	if charge.InvoiceID == "" {
		return trace{nothing: "the charge paid no invoice"}, "", nil
	}
	subscription, err := w.invoiceOwner(ctx, key, charge.InvoiceID)
	switch {
	case err != nil:
		return trace{}, "", err
	case subscription == "":
		return trace{nothing: "its invoice is about no subscription"}, charge.InvoiceID, nil
	default:
		return trace{subscriptions: []string{subscription}}, charge.InvoiceID, nil
	}
}

func (w *Worker) invoiceOwner(ctx context.Context, key syncKey, id string) (string, error) {
	if w.api.serves(key.Livemode) {
		raw, err := w.api.get(ctx, call{account: key.Account, path: "/v1/invoices/" + url.PathEscape(id)})
		if err != nil {
			return "", err
		}
		invoice, err := decodeInvoice(raw)
		return invoice.SubscriptionID, err
	}
	args := key.args()
	args["id"] = id
	rows, err := w.ledger.pool.Query(ctx, `SELECT subscription_id FROM stripe_events
		WHERE object_kind = 'invoice' AND object_id = @id AND account = @account AND livemode = @livemode
		ORDER BY subscription_id DESC LIMIT 1`, args)
	if err != nil {
		return "", fmt.Errorf("read events of invoice %s: %w", id, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", fmt.Errorf("read events of invoice %s: %w", id, err)
	}
	if len(found) == 0 {
		return "", fmt.Errorf("%w: %s", errUntoldInvoice, id)
	}
	return found[0], nil
}

// traceCustomer finds the subscriptions of a customer that was deleted.
func (w *Worker) traceCustomer(ctx context.Context, e objectEvent) (trace, error) {
	customer, err := decodeCustomer(e.object)
	if err != nil {
		return trace{}, err
	}
	args := e.key.args()
	args["customer"] = customer.ID
	rows, err := w.ledger.pool.Query(ctx, `SELECT subscription_id FROM stripe_sync_requests
		WHERE customer_id = @customer AND account = @account AND livemode = @livemode`, args)
	if err != nil {
		return trace{}, fmt.Errorf("read subscriptions of customer %s: %w", customer.ID, err)
	}
	known, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return trace{}, fmt.Errorf("read subscriptions of customer %s: %w", customer.ID, err)
	}
	known = append(known, customer.Subscriptions...)
	if w.api.serves(e.key.Livemode) {
		err = w.api.list(ctx, call{account: e.key.Account, path: "/v1/subscriptions", query: url.Values{
			"customer": {customer.ID}, "status": {"all"},
		}}, func(raw json.RawMessage) (bool, error) {
			o, err := parseObject("subscription", raw)
			known = append(known, nonEmpty(storable(o.text("id")))...)
			return true, err
		})
		if err != nil && !isFault(err, faultMissing) {
			return trace{}, err
		}
	}
	slices.Sort(known)
	return trace{
		subscriptions: slices.Compact(known), deleted: customer.ID, nothing: "the customer had no subscription that is known",
	}, nil
}
