package webhooks

import (
	"encoding/json"
	"strings"
)

// chargeObject is a payment, and what of it was given back.
type chargeObject struct {
	ID string
	// InvoiceID is empty since 2025-03-31.basil: ask for it at an older version.
	InvoiceID      string
	AmountRefunded int64
}

// refundObject is money given back of a charge.
type refundObject struct{ ID, ChargeID string }

// disputeObject is a payment that its bank contests.
type disputeObject struct {
	ID, ChargeID string
	Status       string
	// Withdrawn is how much of the money the dispute holds back now. An inquiry
	// holds none, and one that was won gave it back.
	Withdrawn int64
}

// inquiry reports whether the bank only asks: no money moves.
func (d disputeObject) inquiry() bool { return strings.HasPrefix(d.Status, "warning_") }

// checkoutSession is a purchase. It links a customer to a workspace and entitles nobody:
// one that is completed may be unpaid for days.
type checkoutSession struct {
	ID                string
	SubscriptionID    string
	ClientReferenceID string
	Metadata          map[string]string
}

// customerObject is a customer, or what is left of one that was deleted.
type customerObject struct {
	ID            string
	Subscriptions []string
}

func decodeCharge(raw json.RawMessage) (chargeObject, error) {
	o, id, err := identified("charge", raw)
	c := chargeObject{ID: id, InvoiceID: o.id("invoice")}
	c.AmountRefunded, _ = o.number("amount_refunded")
	return c, err
}

func decodeRefund(raw json.RawMessage) (refundObject, error) {
	o, id, err := identified("refund", raw)
	return refundObject{ID: id, ChargeID: o.id("charge")}, err
}

func decodeDispute(raw json.RawMessage) (disputeObject, error) {
	o, id, err := identified("dispute", raw)
	if err != nil {
		return disputeObject{}, err
	}
	d := disputeObject{ID: id, ChargeID: o.id("charge")}
	if d.Status, err = o.required("status"); err != nil {
		return disputeObject{}, err
	}
	moved, err := o.objects("balance_transactions")
	if err != nil {
		return disputeObject{}, err
	}
	for _, transaction := range moved {
		amount, _ := transaction.number("amount")
		d.Withdrawn -= amount
	}
	d.Withdrawn = max(d.Withdrawn, 0)
	return d, nil
}

func decodeSession(raw json.RawMessage) (checkoutSession, error) {
	o, id, err := identified("session", raw)
	return checkoutSession{
		ID: id, SubscriptionID: o.id("subscription"), ClientReferenceID: o.text("client_reference_id"), Metadata: o.texts("metadata"),
	}, err
}

func decodeCustomer(raw json.RawMessage) (customerObject, error) {
	o, id, err := identified("customer", raw)
	if err != nil {
		return customerObject{}, err
	}
	c := customerObject{ID: id}
	listed, err := o.objects("subscriptions")
	for _, subscription := range listed {
		c.Subscriptions = append(c.Subscriptions, nonEmpty(subscription.text("id"))...)
	}
	return c, err
}

// identified is an object that cannot do without its id, and nothing else.
func identified(path string, raw json.RawMessage) (jsonObject, string, error) {
	o, err := parseObject(path, raw)
	if err != nil {
		return jsonObject{}, "", err
	}
	id, err := o.ownID()
	return o, id, err
}
