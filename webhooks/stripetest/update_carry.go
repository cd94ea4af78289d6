package stripetest

import (
	"slices"
	"time"
)

// carryOut makes the planned change real.
func (s *Stripe) carryOut(c *changing) error {
	customer := s.customers[c.was.Customer]
	lacking := c.bills && !s.canPay(customer, totalOf(c.lines))
	switch {
	case lacking && c.p.PaymentBehavior == ErrorIfIncomplete:
		return declined()
	case lacking && c.p.PaymentBehavior == PendingIfIncomplete && c.was.Status != Incomplete:
		s.wait(c)
		return nil
	}
	sub, before := c.was, c.was.clone()
	will := *c.will
	will.owed = append(slices.Clone(before.owed), s.putOff(c)...)
	*sub = will
	var inv *Invoice
	if c.bills {
		inv = s.bill(sub, c.lines)
	}
	if c.p.EndTrial && before.Status == Trialing {
		s.emit(happening{typ: "customer.subscription.trial_will_end", object: sub.clone()})
	}
	s.told(sub, before)
	if p := sub.PauseCollection; p != nil && !p.ResumesAt.IsZero() {
		s.resumeCollectionAt(sub, p.ResumesAt)
	}
	if inv != nil {
		s.attempt(inv)
	}
	return nil
}

// putOff is what the next invoice gets.
func (s *Stripe) putOff(c *changing) []Line {
	if c.bills {
		return nil
	}
	return c.lines
}

// bill makes and finalizes an invoice for a change.
func (s *Stripe) bill(sub *Subscription, lines []Line) *Invoice {
	now := s.now(sub)
	inv := s.invoice(draft{
		sub: sub, reason: ReasonUpdate, lines: append(sub.takeOwed(), lines...), start: now, end: now,
	})
	sub.LatestInvoice = inv.ID
	s.finalize(inv)
	return inv
}

func (s *Stripe) resumeCollectionAt(sub *Subscription, at time.Time) {
	s.at(s.clockOf(sub), at, func() {
		if p := sub.PauseCollection; p != nil && p.ResumesAt.Equal(at) && !sub.ended() {
			s.change(sub, func() { sub.PauseCollection = nil })
		}
	})
}

// wait makes the change a pending update: the subscription keeps its items, and cycles on
// them, until the invoice is paid.
func (s *Stripe) wait(c *changing) {
	sub := c.was
	if old := sub.PendingUpdate; old != nil {
		s.void(s.invoices.byID[old.Invoice])
	}
	inv := s.invoice(draft{sub: sub, reason: ReasonUpdate, lines: c.lines, start: c.now, end: c.now})
	s.finalize(inv)
	expires := c.now.Add(incompleteFor)
	s.change(sub, func() {
		sub.LatestInvoice = inv.ID
		sub.PendingUpdate = &PendingUpdate{
			ExpiresAt: expires, Items: slices.Clone(c.will.Items), Invoice: inv.ID, base: sub.Items[0].Start,
		}
		if !c.will.Anchor.Equal(sub.Anchor) {
			sub.PendingUpdate.Anchor = c.will.Anchor
		}
	})
	s.at(s.clockOf(sub), expires, func() {
		if p := sub.PendingUpdate; p != nil && p.Invoice == inv.ID {
			s.expirePending(sub)
		}
	})
	s.attempt(inv)
}

func (s *Stripe) expirePending(sub *Subscription) {
	inv := s.invoices.byID[sub.PendingUpdate.Invoice]
	s.void(inv)
	s.change(sub, func() { sub.PendingUpdate = nil }, "customer.subscription.pending_update_expired")
}

// applyPending makes a pending update real. If the subscription has renewed since, only
// prices and quantities change.
func (s *Stripe) applyPending(sub *Subscription) {
	p := sub.PendingUpdate
	s.change(sub, func() {
		sub.PendingUpdate = nil
		if !p.base.Equal(sub.Items[0].Start) {
			sub.reprice(p.Items)
			return
		}
		sub.Items = p.Items
		if !p.Anchor.IsZero() {
			sub.Anchor, sub.Begun = p.Anchor, KindAnchorReset
		}
		sub.moveScheduledEnd()
	}, "customer.subscription.pending_update_applied")
}

func (u *Subscription) reprice(items []Item) {
	for _, item := range items {
		if at := u.item(item.ID); at >= 0 {
			u.Items[at].Price, u.Items[at].Quantity = item.Price, item.Quantity
		}
	}
}
