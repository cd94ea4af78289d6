package stripetest

import (
	"maps"
	"time"
)

// Session is a Checkout session.
type Session struct {
	ID, Customer, Account string
	Livemode              bool
	TestClock             string
	ClientReferenceID     string
	Metadata              map[string]string
	// Status is "open", "complete" or "expired", PaymentStatus "paid", "unpaid" or
	// "no_payment_required".
	Status, PaymentStatus string
	// Subscription and Invoice are there once it is complete.
	Subscription, Invoice string
	Amount                int64
	Created               time.Time
}

// CheckoutParams describe a Checkout session in subscription mode.
type CheckoutParams struct {
	ClientReferenceID string
	// Metadata is the session's own: the subscription does not get it.
	Metadata map[string]string
	// Subscribe is the subscription that it leads to.
	Subscribe SubscribeParams
}

func (c *Session) owner() owner {
	return owner{
		object: "checkout.session", id: c.ID, sub: c.Subscription, account: c.Account, clock: c.TestClock, livemode: c.Livemode,
	}
}

func (c *Session) clone() *Session {
	out := *c
	out.Metadata = maps.Clone(c.Metadata)
	return &out
}

// Checkout makes a session and completes it: the customer subscribes. With
// PaymentDelayed the session is complete and unpaid until SettleCheckout. It fails as
// Subscribe does; a payment that fails leaves the session open, and no event but those of
// the payment.
func (s *Stripe) Checkout(p CheckoutParams) (Session, error) {
	s.enter()
	defer s.leave()
	sub, err := s.subscribe(p.Subscribe)
	if err != nil {
		return Session{}, err
	}
	inv := s.invoices.byID[sub.LatestInvoice]
	session := s.session(p, s.customers[sub.Customer])
	session.Status, session.Subscription, session.Invoice, session.Amount = "complete", sub.ID, inv.ID, inv.Total
	switch {
	case inv.Total == 0:
		session.PaymentStatus = "no_payment_required"
	case inv.Status == InvoicePaid:
		session.PaymentStatus = "paid"
	case s.customers[sub.Customer].Payment != PaymentDelayed:
		session.Status = "open"
	}
	s.sessions.add(session.ID, sub.ID, session)
	if session.Status == "complete" {
		s.emit(happening{typ: "checkout.session.completed", object: session.clone()})
	}
	return *session.clone(), nil
}

// AbandonCheckout makes a session that expires without a subscription.
func (s *Stripe) AbandonCheckout(p CheckoutParams) (Session, error) {
	s.enter()
	defer s.leave()
	c, err := s.customer(p.Subscribe.Customer)
	if err != nil {
		return Session{}, err
	}
	session := s.session(p, c)
	session.Status = "expired"
	s.sessions.add(session.ID, "", session)
	s.emit(happening{typ: "checkout.session.expired", object: session.clone()})
	return *session.clone(), nil
}

// SettleCheckout ends the wait of a session whose payment was delayed.
func (s *Stripe) SettleCheckout(id string, succeeds bool) error {
	s.enter()
	defer s.leave()
	session, ok := s.sessions.byID[id]
	switch {
	case !ok:
		return missing("checkout.session", id)
	case session.Status != "complete" || session.PaymentStatus != "unpaid":
		return refused("id", "The session waits for no payment.")
	}
	inv, err := s.unpaid(session.Invoice)
	if err != nil {
		return err
	}
	s.settlePayment(inv, succeeds)
	typ := "checkout.session.async_payment_failed"
	if succeeds {
		session.PaymentStatus, typ = "paid", "checkout.session.async_payment_succeeded"
	}
	s.emit(happening{typ: typ, object: session.clone()})
	return nil
}

func (s *Stripe) session(p CheckoutParams, c *Customer) *Session {
	kind := "cs_test"
	if c.Livemode {
		kind = "cs_live"
	}
	return &Session{
		ID: s.ids.make(kind), Customer: c.ID, Account: c.Account, Livemode: c.Livemode, TestClock: c.TestClock,
		ClientReferenceID: p.ClientReferenceID, Metadata: maps.Clone(p.Metadata), PaymentStatus: "unpaid",
		Created: s.clocks[c.TestClock].now,
	}
}
