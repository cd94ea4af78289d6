package stripetest

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// InvoiceStatus is an invoice's status.
type InvoiceStatus string

// The statuses of invoices.
const (
	InvoiceDraft         InvoiceStatus = "draft"
	InvoiceOpen          InvoiceStatus = "open"
	InvoicePaid          InvoiceStatus = "paid"
	InvoiceVoid          InvoiceStatus = "void"
	InvoiceUncollectible InvoiceStatus = "uncollectible"
)

// Reason is why an invoice was made.
type Reason string

// The billing reasons.
const (
	ReasonCreate Reason = "subscription_create"
	ReasonCycle  Reason = "subscription_cycle"
	ReasonUpdate Reason = "subscription_update"
	ReasonManual Reason = "manual"
)

// Invoice is an invoice as it is at one moment; times are zero if not set.
type Invoice struct {
	ID, Number, Customer, Account string
	// Subscription is empty for a one-off invoice.
	Subscription string
	Livemode     bool
	TestClock    string
	Status       InvoiceStatus
	Reason       Reason
	Currency     string
	Created      time.Time
	// PeriodStart and PeriodEnd look one period back, and are one instant on all but
	// renewals.
	PeriodStart, PeriodEnd time.Time
	Lines                  []Line
	// Total is the sum of the lines, AmountDue what is left of it after credit.
	Total, AmountDue, AmountPaid, CreditUsed int64
	AttemptCount                             int
	NextAttempt                              time.Time
	AutoAdvance, PaidOutOfBand               bool
	// Charge and PaymentIntent are those of the last attempt, if any.
	Charge, PaymentIntent                    string
	FinalizedAt, PaidAt, VoidedAt, GivenUpAt time.Time
	Metadata                                 map[string]string
	mode                                     BillingMode
}

// Line is one line of an invoice.
type Line struct {
	ID, Description    string
	Amount             int64
	Price              Price
	Quantity           int64
	Item, Subscription string
	Start, End         time.Time
	// Proration lines credit or charge a part of a period.
	Proration bool
	// InvoiceItem is the item that a proration is made of in classic mode.
	InvoiceItem string
}

func (i *Invoice) owner() owner {
	return owner{
		object: "invoice", id: i.ID, sub: i.Subscription, account: i.Account, clock: i.TestClock, livemode: i.Livemode,
	}
}

func (i *Invoice) clone() *Invoice {
	out := *i
	out.Lines, out.Metadata = slices.Clone(i.Lines), maps.Clone(i.Metadata)
	return &out
}

// Invoice is the invoice of an id as it is now.
func (s *Stripe) Invoice(id string) (Invoice, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	inv, ok := s.invoices.byID[id]
	if !ok {
		return Invoice{}, missing("invoice", id)
	}
	return *inv.clone(), nil
}

// Invoices are those of a subscription, oldest first; of none with "".
func (s *Stripe) Invoices(subscription string) []Invoice {
	s.mu.Lock()
	defer s.mu.Unlock()
	return copies(s.invoices.bySub[subscription], (*Invoice).clone)
}

// draft is an invoice to be made.
type draft struct {
	sub        *Subscription
	reason     Reason
	lines      []Line
	start, end time.Time
}

func (s *Stripe) invoice(d draft) *Invoice {
	inv := &Invoice{
		ID: s.ids.make("in"), Customer: d.sub.Customer, Account: d.sub.Account, Subscription: d.sub.ID,
		Livemode: d.sub.Livemode, TestClock: d.sub.TestClock, Status: InvoiceDraft, Reason: d.reason,
		Currency: d.sub.Items[0].Price.Currency, Created: s.now(d.sub), PeriodStart: d.start, PeriodEnd: d.end,
		Lines: d.lines, AutoAdvance: true, Metadata: maps.Clone(d.sub.Metadata), mode: d.sub.BillingMode,
	}
	s.open(inv)
	return inv
}

// open numbers the lines of a new invoice and tells of it.
func (s *Stripe) open(inv *Invoice) {
	for at := range inv.Lines {
		line := &inv.Lines[at]
		line.ID = s.ids.make("il")
		if line.Proration && inv.mode == Classic {
			line.InvoiceItem = s.ids.make("ii")
		}
	}
	inv.Total = totalOf(inv.Lines)
	inv.AmountDue = max(inv.Total, 0)
	s.invoices.add(inv.ID, inv.Subscription, inv)
	s.emit(happening{typ: "invoice.created", object: inv.clone()})
}

// changeInvoice applies a change, then tells of it by the events given and by
// invoice.updated.
func (s *Stripe) changeInvoice(inv *Invoice, apply func(), told ...string) {
	before := inv.clone()
	apply()
	after := inv.clone()
	s.emit(happening{typ: "invoice.updated", object: after, before: before})
	for _, typ := range told {
		s.emit(happening{typ: typ, object: after})
	}
}

// finalize makes a draft an open invoice; the customer's credit pays what it can.
func (s *Stripe) finalize(inv *Invoice) {
	customer := s.customers[inv.Customer]
	used := min(max(inv.Total, 0), max(-customer.Balance, 0))
	s.changeInvoice(inv, func() {
		inv.Status, inv.FinalizedAt = InvoiceOpen, s.clocks[inv.TestClock].now
		inv.Number = fmt.Sprintf("FAKE-%04d", s.invoices.at[inv.ID]+1)
		inv.CreditUsed, inv.AmountDue = used, max(inv.Total, 0)-used
		if inv.AmountDue > 0 {
			inv.PaymentIntent = s.ids.make("pi")
		}
	}, "invoice.finalized")
	if moved := used + min(inv.Total, 0); moved != 0 {
		s.changeCustomer(customer, func() { customer.Balance += moved })
	}
}

func (s *Stripe) void(inv *Invoice) {
	if inv.Status != InvoiceOpen && inv.Status != InvoiceUncollectible {
		return
	}
	s.changeInvoice(inv, func() {
		inv.Status, inv.VoidedAt, inv.NextAttempt = InvoiceVoid, s.clocks[inv.TestClock].now, time.Time{}
	}, "invoice.voided")
}

func (s *Stripe) giveUp(inv *Invoice) {
	s.changeInvoice(inv, func() {
		inv.Status, inv.GivenUpAt, inv.NextAttempt = InvoiceUncollectible, s.clocks[inv.TestClock].now, time.Time{}
	}, "invoice.marked_uncollectible")
}

// VoidInvoice voids an open or uncollectible invoice. The subscription's status stays,
// but one that waits for its first payment expires.
func (s *Stripe) VoidInvoice(id string) error {
	s.enter()
	defer s.leave()
	inv, err := s.unpaid(id)
	if err != nil {
		return err
	}
	s.void(inv)
	if sub := s.subs.byID[inv.Subscription]; sub != nil && sub.LatestInvoice == id {
		s.expire(sub)
	}
	return nil
}

// MarkUncollectible gives an open invoice up. It can still be paid by hand.
func (s *Stripe) MarkUncollectible(id string) error {
	s.enter()
	defer s.leave()
	inv, err := s.unpaid(id)
	if err != nil {
		return err
	}
	s.giveUp(inv)
	return nil
}

// unpaid is an invoice that is finalized and neither paid nor void.
func (s *Stripe) unpaid(id string) (*Invoice, error) {
	inv, ok := s.invoices.byID[id]
	switch {
	case !ok:
		return nil, missing("invoice", id)
	case inv.Status != InvoiceOpen && inv.Status != InvoiceUncollectible:
		return nil, refused("id", "This invoice is "+string(inv.Status)+".")
	}
	return inv, nil
}

// InvoiceOnce makes, finalizes and collects an invoice that belongs to no subscription.
func (s *Stripe) InvoiceOnce(customer string, amount int64) (Invoice, error) {
	s.enter()
	defer s.leave()
	c, err := s.customer(customer)
	if err != nil {
		return Invoice{}, err
	}
	now := s.clocks[c.TestClock].now
	inv := &Invoice{
		ID: s.ids.make("in"), Customer: c.ID, Account: c.Account, Livemode: c.Livemode, TestClock: c.TestClock,
		Status: InvoiceDraft, Reason: ReasonManual, Currency: "usd", Created: now, PeriodStart: now, PeriodEnd: now,
		AutoAdvance: true, mode: Classic,
		Lines: []Line{{Amount: amount, Quantity: 1, Description: "One-off", Start: now, End: now}},
	}
	inv.Lines[0].InvoiceItem = s.ids.make("ii")
	s.open(inv)
	s.invoices.bySub[""] = append(s.invoices.bySub[""], inv)
	s.finalize(inv)
	s.attempt(inv)
	return *inv.clone(), nil
}
