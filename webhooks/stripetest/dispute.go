package stripetest

import "time"

// Dispute is a customer's complaint to the bank.
type Dispute struct {
	ID, Charge, PaymentIntent, Account string
	Subscription                       string
	Livemode                           bool
	TestClock                          string
	Amount                             int64
	Currency                           string
	// Status is "needs_response", "warning_needs_response" for an inquiry, "won",
	// "lost" or "warning_closed".
	Status string
	// Withdrawn is whether the money is with the bank.
	Withdrawn bool
	Created   time.Time
}

const inquiryOpen = "warning_needs_response"

func (d *Dispute) owner() owner {
	return owner{
		object: "dispute", id: d.ID, sub: d.Subscription, account: d.Account, clock: d.TestClock, livemode: d.Livemode,
	}
}

func (d *Dispute) clone() *Dispute {
	out := *d
	return &out
}

// OpenDispute disputes the charge of an invoice. The money is withdrawn at once, but for
// an inquiry, which moves none.
func (s *Stripe) OpenDispute(invoice string, inquiry bool) (Dispute, error) {
	s.enter()
	defer s.leave()
	c, err := s.chargeOf(invoice)
	if err != nil {
		return Dispute{}, err
	}
	if c.Disputed {
		return Dispute{}, refused("charge", "The charge has been disputed already.")
	}
	d := &Dispute{
		ID: s.ids.make("dp"), Charge: c.ID, PaymentIntent: c.PaymentIntent, Account: c.Account, Livemode: c.Livemode,
		Subscription: c.Subscription, TestClock: c.TestClock, Amount: c.Amount, Currency: c.Currency,
		Status: "needs_response", Withdrawn: !inquiry, Created: s.clocks[c.TestClock].now,
	}
	if inquiry {
		d.Status = inquiryOpen
	}
	c.Disputed = true
	s.disputes.add(d.ID, d.Subscription, d)
	s.emit(happening{typ: "charge.dispute.created", object: d.clone()})
	if d.Withdrawn {
		s.emit(happening{typ: "charge.dispute.funds_withdrawn", object: d.clone()})
	}
	return *d, nil
}

// EscalateDispute turns an inquiry into a dispute: now the money is withdrawn.
func (s *Stripe) EscalateDispute(id string) error {
	s.enter()
	defer s.leave()
	d, ok := s.disputes.byID[id]
	switch {
	case !ok:
		return missing("dispute", id)
	case d.Status != inquiryOpen:
		return refused("id", "The dispute is not an inquiry.")
	}
	before := d.clone()
	d.Status, d.Withdrawn = "needs_response", true
	s.emit(happening{typ: "charge.dispute.updated", object: d.clone(), before: before})
	s.emit(happening{typ: "charge.dispute.funds_withdrawn", object: d.clone()})
	return nil
}

// CloseDispute ends a dispute. Won, the money comes back; an inquiry just ends.
func (s *Stripe) CloseDispute(id string, won bool) error {
	s.enter()
	defer s.leave()
	d, ok := s.disputes.byID[id]
	switch {
	case !ok:
		return missing("dispute", id)
	case d.Status != inquiryOpen && d.Status != "needs_response":
		return refused("id", "The dispute is closed.")
	}
	before := d.clone()
	back := won && d.Withdrawn
	switch {
	case d.Status == inquiryOpen:
		d.Status = "warning_closed"
	case won:
		d.Status, d.Withdrawn = "won", false
	default:
		d.Status = "lost"
	}
	s.emit(happening{typ: "charge.dispute.updated", object: d.clone(), before: before})
	s.emit(happening{typ: "charge.dispute.closed", object: d.clone()})
	if back {
		s.emit(happening{typ: "charge.dispute.funds_reinstated", object: d.clone()})
	}
	return nil
}
