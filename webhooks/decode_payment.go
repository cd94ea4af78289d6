package webhooks

import (
	"encoding/json"
	"strings"
	"time"
)

// chargeObject is a payment, and what of it was given back.
type chargeObject struct {
	ID         string
	CustomerID string
	// InvoiceID is empty since 2025-03-31.basil: ask for it at an older version.
	InvoiceID       string
	PaymentIntentID string
	Livemode        bool
	Amount          int64
	AmountRefunded  int64
	Refunded        bool
	Disputed        bool
}

// refundObject is money given back of a charge.
type refundObject struct {
	ID, ChargeID, PaymentIntentID string
	Status                        string
	Amount                        int64
}

// disputeObject is a payment that its bank contests.
type disputeObject struct {
	ID, ChargeID, PaymentIntentID string
	Livemode                      bool
	Status                        string
	Reason                        string
	Amount                        int64
	// Withdrawn is how much of the money the dispute holds back now. An inquiry
	// holds none, and one that was won gave it back.
	Withdrawn int64
	Created   time.Time
}

// inquiry reports whether the bank only asks: no money moves.
func (d disputeObject) inquiry() bool { return strings.HasPrefix(d.Status, "warning_") }

// checkoutSession is a purchase; it is what links a customer to a workspace.
type checkoutSession struct {
	ID                string
	Livemode          bool
	Mode              string
	SubscriptionID    string
	CustomerID        string
	ClientReferenceID string
	Metadata          map[string]string
	// PaymentStatus may be unpaid on a completed session: the money may be days away.
	PaymentStatus string
}

// customerObject is a customer, or what is left of one that was deleted.
type customerObject struct {
	ID            string
	Livemode      bool
	Deleted       bool
	TestClock     string
	Metadata      map[string]string
	Subscriptions []string
}

func decodeCharge(raw json.RawMessage) (chargeObject, error) {
	o, id, err := identified("charge", raw)
	c := chargeObject{
		ID: id, CustomerID: o.id("customer"), InvoiceID: o.id("invoice"), PaymentIntentID: o.id("payment_intent"),
		Livemode: o.isTrue("livemode"), Refunded: o.isTrue("refunded"), Disputed: o.isTrue("disputed"),
	}
	c.Amount, _ = o.number("amount")
	c.AmountRefunded, _ = o.number("amount_refunded")
	return c, err
}

func decodeRefund(raw json.RawMessage) (refundObject, error) {
	o, id, err := identified("refund", raw)
	r := refundObject{ID: id, ChargeID: o.id("charge"), PaymentIntentID: o.id("payment_intent"), Status: o.text("status")}
	r.Amount, _ = o.number("amount")
	return r, err
}

func decodeDispute(raw json.RawMessage) (disputeObject, error) {
	o, id, err := identified("dispute", raw)
	if err != nil {
		return disputeObject{}, err
	}
	d := disputeObject{
		ID: id, ChargeID: o.id("charge"), PaymentIntentID: o.id("payment_intent"), Livemode: o.isTrue("livemode"),
		Reason: o.text("reason"),
	}
	d.Amount, _ = o.number("amount")
	if created := o.instant("created"); created != nil {
		d.Created = *created
	}
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
		ID: id, Livemode: o.isTrue("livemode"), Mode: o.text("mode"), SubscriptionID: o.id("subscription"),
		CustomerID: o.id("customer"), ClientReferenceID: o.text("client_reference_id"),
		Metadata: o.texts("metadata"), PaymentStatus: o.text("payment_status"),
	}, err
}

func decodeCustomer(raw json.RawMessage) (customerObject, error) {
	o, id, err := identified("customer", raw)
	if err != nil {
		return customerObject{}, err
	}
	c := customerObject{
		ID: id, Livemode: o.isTrue("livemode"), Deleted: o.isTrue("deleted"), TestClock: o.id("test_clock"), Metadata: o.texts("metadata"),
	}
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
