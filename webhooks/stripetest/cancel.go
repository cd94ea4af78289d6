package stripetest

import "time"

// ending is how a subscription ends.
type ending struct {
	at     time.Time
	reason string
	// scheduled ends keep the point in time that was set for them.
	scheduled bool
}

// Cancel ends a subscription now. Its period's end stays where it was, its open invoices
// stay open and are collected no more.
func (s *Stripe) Cancel(id string) (Subscription, error) {
	s.enter()
	defer s.leave()
	sub, err := s.live(id)
	if err != nil {
		return Subscription{}, err
	}
	s.end(sub, ending{at: s.now(sub), reason: "cancellation_requested"})
	return *sub.clone(), nil
}

func (s *Stripe) end(sub *Subscription, e ending) {
	before := sub.clone()
	sub.Status, sub.EndedAt, sub.CancelReason = Canceled, e.at, e.reason
	sub.PendingUpdate = nil
	if !e.scheduled {
		sub.CancelAt, sub.CancelAtPeriodEnd, sub.CanceledAt = time.Time{}, false, s.now(sub)
	}
	if before.Status == Incomplete {
		sub.Status = IncompleteExpired
		s.void(s.invoices.byID[sub.LatestInvoice])
	}
	for _, inv := range s.invoices.bySub[sub.ID] {
		inv.AutoAdvance, inv.NextAttempt = false, time.Time{}
	}
	s.endSchedule(sub, e)
	s.emit(happening{typ: "customer.subscription.deleted", object: s.record(sub)})
}
