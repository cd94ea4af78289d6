package stripetest

import "time"

// announceTrialEnd tells three days before, or at once if that has passed.
func (s *Stripe) announceTrialEnd(sub *Subscription) {
	end := sub.TrialEnd
	notice := end.Add(-trialNotice)
	if !notice.After(s.now(sub)) {
		s.emit(happening{typ: "customer.subscription.trial_will_end", object: sub.clone()})
		return
	}
	s.at(s.clockOf(sub), notice, func() {
		if sub.Status == Trialing && sub.TrialEnd.Equal(end) {
			s.emit(happening{typ: "customer.subscription.trial_will_end", object: sub.clone()})
		}
	})
}

// endTrial is the boundary at which a trial is over: the first paid period begins, unless
// there is nothing to pay with.
func (s *Stripe) endTrial(sub *Subscription) {
	if s.customers[sub.Customer].Payment == PaymentMethodMissing {
		switch sub.TrialMissing {
		case MissingCancels:
			s.end(sub, ending{at: sub.TrialEnd, reason: "payment_failed"})
			return
		case MissingPauses:
			s.change(sub, func() {
				sub.Status, sub.PausedBecause = Paused, "trial_end_without_payment_method"
			}, "customer.subscription.paused")
			return
		case MissingInvoices:
		}
	}
	before := sub.clone()
	sub.Status = Active
	s.renew(sub, before, KindTrialEnd, sub.TrialEnd)
}

// Pause pauses a subscription, as the pause endpoint of 2026 does: no periods and no
// invoices until Resume. Only one in flexible mode can be paused.
func (s *Stripe) Pause(id string) (Subscription, error) {
	s.enter()
	defer s.leave()
	sub, err := s.live(id)
	if err != nil {
		return Subscription{}, err
	}
	if sub.BillingMode != Flexible || sub.Status == Paused || sub.Status == Incomplete {
		return Subscription{}, refused("id", "This subscription cannot be paused.")
	}
	s.change(sub, func() { sub.Status, sub.PausedBecause = Paused, "requested" }, "customer.subscription.paused")
	return *sub.clone(), nil
}

// Resume ends a pause. The anchor moves to now, a new period begins and is invoiced at
// once; if that cannot be paid the subscription is past due.
func (s *Stripe) Resume(id string) (Subscription, error) {
	s.enter()
	defer s.leave()
	sub, err := s.live(id)
	if err != nil {
		return Subscription{}, err
	}
	if sub.Status != Paused {
		return Subscription{}, refused("id", "This subscription is not paused.")
	}
	before := sub.clone()
	sub.Status, sub.PausedBecause = Active, ""
	sub.restart(s.now(sub), KindResume)
	inv := s.bill(sub, chargesOf(sub))
	s.told(sub, before, "customer.subscription.resumed")
	s.attempt(inv)
	return *sub.clone(), nil
}

// restart begins a new cycle of all items.
func (u *Subscription) restart(now time.Time, kind string) {
	u.Anchor, u.Begun = now, kind
	for at := range u.Items {
		item := &u.Items[at]
		item.Start, item.End = now, item.Price.boundaryAfter(now, now)
	}
	u.moveScheduledEnd()
}

// moveScheduledEnd keeps an end at the period's end there.
func (u *Subscription) moveScheduledEnd() {
	if u.CancelAtPeriodEnd {
		u.CancelAt = u.last()
	}
}
