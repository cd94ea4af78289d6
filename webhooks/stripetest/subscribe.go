package stripetest

import (
	"maps"
	"time"
)

// PaymentBehavior is what happens when a payment that is needed cannot be made.
type PaymentBehavior string

// The payment behaviours. DefaultIncomplete does not even try; PendingIfIncomplete is for
// updates only.
const (
	AllowIncomplete     PaymentBehavior = "allow_incomplete"
	DefaultIncomplete   PaymentBehavior = "default_incomplete"
	ErrorIfIncomplete   PaymentBehavior = "error_if_incomplete"
	PendingIfIncomplete PaymentBehavior = "pending_if_incomplete"
)

const (
	incompleteFor = 23 * time.Hour
	trialNotice   = 3 * day
)

// ItemParams are one item of a subscription to be made.
type ItemParams struct {
	Price string
	// Quantity is 1 if not given.
	Quantity int64
}

// SubscribeParams describe a subscription to be made.
type SubscribeParams struct {
	Customer string
	// Price and Quantity are a short form of Items with one item.
	Price    string
	Quantity int64
	Items    []ItemParams
	Metadata map[string]string
	// Trial is how long the first period is free, if at all, cut to the second.
	Trial        time.Duration
	TrialMissing MissingMethod
	// BillingMode is that of the account if not given.
	BillingMode BillingMode
	// PaymentBehavior is AllowIncomplete if not given.
	PaymentBehavior PaymentBehavior
}

// Subscribe makes a subscription and its first invoice. If there is something to pay it
// is incomplete at first, and active as soon as that is paid. It fails, and nothing is
// made, for an unknown customer or price, for prices that do not go together, and with
// ErrorIfIncomplete if the payment fails.
func (s *Stripe) Subscribe(p SubscribeParams) (Subscription, error) {
	s.enter()
	defer s.leave()
	sub, err := s.subscribe(p)
	if err != nil {
		return Subscription{}, err
	}
	return *sub.clone(), nil
}

func (s *Stripe) subscribe(p SubscribeParams) (*Subscription, error) {
	customer, err := s.customer(p.Customer)
	if err != nil {
		return nil, err
	}
	if len(p.Items) == 0 {
		p.Items = []ItemParams{{Price: p.Price, Quantity: p.Quantity}}
	}
	sub := &Subscription{
		Customer: customer.ID, Account: customer.Account, Livemode: customer.Livemode, TestClock: customer.TestClock,
		BillingMode: orElse(p.BillingMode, s.options.BillingMode), Metadata: maps.Clone(p.Metadata),
		TrialMissing: orElse(p.TrialMissing, MissingInvoices), Begun: KindCreated, Status: Incomplete,
	}
	now := s.now(sub)
	sub.Created, sub.Anchor = now, now
	if trial := p.Trial.Truncate(time.Second); trial > 0 {
		sub.Status, sub.TrialStart, sub.TrialEnd, sub.Anchor = Trialing, now, now.Add(trial), now.Add(trial)
	}
	if err := s.addItems(sub, p.Items); err != nil {
		return nil, err
	}
	lines := chargesOf(sub)
	if p.PaymentBehavior == ErrorIfIncomplete && !s.canPay(customer, totalOf(lines)) {
		return nil, declined()
	}
	sub.ID = s.ids.make("sub")
	for at := range sub.Items {
		sub.Items[at].ID = s.ids.make("si")
		lines[at].Item, lines[at].Subscription = sub.Items[at].ID, sub.ID
	}
	s.subs.add(sub.ID, "", sub)
	s.begin(sub, lines, p.PaymentBehavior)
	return sub, nil
}

// begin invoices a new subscription and collects what is due.
func (s *Stripe) begin(sub *Subscription, lines []Line, behavior PaymentBehavior) {
	now := s.now(sub)
	inv := s.invoice(draft{sub: sub, reason: ReasonCreate, lines: lines, start: now, end: now})
	sub.LatestInvoice = inv.ID
	s.finalize(inv)
	if inv.AmountDue == 0 && sub.Status == Incomplete {
		sub.Status = Active
	}
	if inv.AmountDue == 0 {
		s.settle(inv)
	}
	s.emit(happening{typ: "customer.subscription.created", object: s.record(sub)})
	if sub.Status == Incomplete {
		s.at(s.clockOf(sub), now.Add(incompleteFor), func() { s.expire(sub) })
		if behavior != DefaultIncomplete {
			s.attempt(inv)
		}
	}
	if sub.Status == Trialing {
		s.announceTrialEnd(sub)
	}
	s.follow(sub)
}

func (s *Stripe) addItems(sub *Subscription, items []ItemParams) error {
	for _, p := range items {
		price, ok := s.prices[p.Price]
		if !ok {
			return missing("price", p.Price)
		}
		if !price.Active {
			return refused("items", "The price specified is inactive. This field only accepts active prices.")
		}
		item := Item{Price: *price, Quantity: orElse(p.Quantity, 1), Start: sub.Created, Created: sub.Created}
		item.End = price.boundaryAfter(sub.Anchor, sub.Created)
		if sub.Status == Trialing {
			item.End = sub.TrialEnd
		}
		sub.Items = append(sub.Items, item)
	}
	return sub.fits()
}

// fits is an error for items that a subscription of its mode cannot have.
func (u *Subscription) fits() error {
	if len(u.Items) == 0 {
		return refused("items", "A subscription must have at least one active item.")
	}
	for _, item := range u.Items {
		if u.BillingMode == Classic && !sameInterval(item.Price, u.Items[0].Price) {
			return refused("items", "All prices on a subscription must have the same `recurring.interval`.")
		}
	}
	return nil
}

func sameInterval(a, b Price) bool { return a.Interval == b.Interval && a.Count == b.Count }

// expire ends a subscription whose first payment was never made.
func (s *Stripe) expire(sub *Subscription) {
	if sub.Status != Incomplete {
		return
	}
	s.void(s.invoices.byID[sub.LatestInvoice])
	s.change(sub, func() { sub.Status, sub.EndedAt = IncompleteExpired, s.now(sub) })
}
