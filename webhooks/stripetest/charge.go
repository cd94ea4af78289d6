package stripetest

import (
	"slices"
	"time"
)

// Charge is one attempt to take money.
type Charge struct {
	ID, Customer, Account string
	Livemode              bool
	TestClock             string
	// Invoice and Subscription are what it pays.
	Invoice, Subscription, PaymentIntent string
	Amount, Refunded                     int64
	Currency                             string
	// Succeeded is whether the money came.
	Succeeded, Disputed bool
	// Pending is one whose money is still on its way.
	Pending bool
	Created time.Time
	refunds []refund
}

// refund is money given back.
type refund struct {
	id      string
	amount  int64
	created time.Time
	charge  *Charge
}

// intent is the payment intent behind a charge, as far as events show it.
type intent struct {
	charge *Charge
	status string
}

func (c *Charge) owner() owner {
	return owner{
		object: "charge", id: c.ID, sub: c.Subscription, account: c.Account, clock: c.TestClock, livemode: c.Livemode,
	}
}

func (i intent) owner() owner {
	o := i.charge.owner()
	o.object, o.id = "payment_intent", i.charge.PaymentIntent
	return o
}

func (r refund) owner() owner {
	o := r.charge.owner()
	o.object, o.id = "refund", r.id
	return o
}

func (c *Charge) clone() *Charge {
	out := *c
	out.refunds = slices.Clone(c.refunds)
	return &out
}

func (s *Stripe) charge(inv *Invoice, succeeded bool) *Charge {
	c := &Charge{
		ID: s.ids.make("ch"), Customer: inv.Customer, Account: inv.Account, Livemode: inv.Livemode,
		TestClock: inv.TestClock, Invoice: inv.ID, Subscription: inv.Subscription, PaymentIntent: inv.PaymentIntent,
		Amount: inv.AmountDue, Currency: inv.Currency, Succeeded: succeeded, Created: s.clocks[inv.TestClock].now,
	}
	s.charges.add(c.ID, inv.Subscription, c)
	return c
}

// Refund gives back a part of what an invoice brought, all that is left with amount 0.
// The invoice stays paid and the subscription as it is. It fails for an invoice without a
// charge, and if more is asked for than is left.
func (s *Stripe) Refund(invoice string, amount int64) (Charge, error) {
	s.enter()
	defer s.leave()
	c, err := s.chargeOf(invoice)
	if err != nil {
		return Charge{}, err
	}
	amount = orElse(amount, c.Amount-c.Refunded)
	if amount <= 0 || amount > c.Amount-c.Refunded {
		return Charge{}, refused("amount", "Refund amount is greater than unrefunded amount on charge.")
	}
	before := c.clone()
	c.Refunded += amount
	r := refund{id: s.ids.make("re"), amount: amount, created: s.clocks[c.TestClock].now}
	c.refunds = append(c.refunds, r)
	after := c.clone()
	r.charge = after
	s.emit(happening{typ: "charge.refunded", object: after, before: before})
	s.emit(happening{typ: "refund.created", object: r})
	return *after, nil
}

// ChargeOf is the charge that paid an invoice.
func (s *Stripe) ChargeOf(invoice string) (Charge, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.chargeOf(invoice)
	if err != nil {
		return Charge{}, err
	}
	return *c.clone(), nil
}

func (s *Stripe) chargeOf(invoice string) (*Charge, error) {
	inv, ok := s.invoices.byID[invoice]
	if !ok {
		return nil, missing("invoice", invoice)
	}
	c := s.charges.byID[inv.Charge]
	if c == nil || !c.Succeeded {
		return nil, refused("charge", "The invoice has no successful charge.")
	}
	return c, nil
}
