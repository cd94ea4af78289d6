package stripetest

import "time"

// draftFor is how long a renewal's invoice is a draft.
const draftFor = time.Hour

// follow notes the next boundary of a subscription: the end of a period, or of all.
func (s *Stripe) follow(sub *Subscription) {
	due, ok := sub.boundary()
	if !ok {
		return
	}
	s.at(s.clockOf(sub), due.Add(s.options.RenewalLag), func() {
		if still, ok := sub.boundary(); ok && still.Equal(due) {
			s.pass(sub, due)
		}
	})
}

// boundary is the next point in time at which the subscription changes by itself, if it
// does: a paused one stands still, but for its scheduled end.
func (u *Subscription) boundary() (time.Time, bool) {
	next := u.next()
	switch {
	case u.ended(), u.Status == Paused && u.CancelAt.IsZero():
		return time.Time{}, false
	case !u.CancelAt.IsZero() && (u.Status == Paused || !u.CancelAt.After(next)):
		return u.CancelAt, true
	}
	return next, true
}

func (s *Stripe) pass(sub *Subscription, due time.Time) {
	if p := sub.PendingUpdate; p != nil && !p.Anchor.IsZero() {
		// Its cycle would begin before the one that begins now.
		s.expirePending(sub)
	}
	switch {
	case !sub.CancelAt.IsZero() && !sub.CancelAt.After(due):
		s.end(sub, ending{at: sub.CancelAt, reason: "cancellation_requested", scheduled: true})
	case sub.Status == Trialing:
		s.endTrial(sub)
	default:
		before := sub.clone()
		s.renew(sub, before, KindCycle, due)
	}
}

// Renew moves the clock of a subscription through the end of its period and the draft hour
// after it: its next period is paid then, or is not. All else on that clock moves too. It
// fails for one that does not renew by itself.
func (s *Stripe) Renew(id string) (Subscription, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub, err := s.live(id)
	if err != nil {
		return Subscription{}, err
	}
	due, ok := sub.boundary()
	if !ok {
		return Subscription{}, refused("id", "A paused subscription does not renew.")
	}
	s.advance(s.clockOf(sub), due.Add(s.options.RenewalLag+draftFor))
	return *sub.clone(), nil
}

// renew moves the items whose period is over to the next one and drafts the invoice of
// it. Nobody has paid then.
func (s *Stripe) renew(sub, before *Subscription, kind string, due time.Time) {
	sub.Begun = kind
	s.enterPhase(sub, due)
	var lines []Line
	for at := range sub.Items {
		item := &sub.Items[at]
		if item.End.After(due) {
			continue
		}
		item.Start, item.End = item.End, item.Price.boundaryAfter(sub.Anchor, item.End)
		lines = append(lines, charge(sub, *item))
	}
	sub.moveScheduledEnd()
	inv := s.invoice(draft{
		sub: sub, reason: ReasonCycle, lines: append(sub.takeOwed(), lines...),
		start: before.Items[0].Start, end: before.Items[0].End,
	})
	sub.LatestInvoice = inv.ID
	s.told(sub, before)
	s.leavePhase(sub)
	s.collectLater(sub, inv)
}

// collectLater decides what becomes of a renewal's draft.
func (s *Stripe) collectLater(sub *Subscription, inv *Invoice) {
	switch {
	case sub.Status == Unpaid:
		inv.AutoAdvance = false
	case sub.PauseCollection != nil && sub.PauseCollection.Behavior == "void":
		s.finalize(inv)
		s.void(inv)
	case sub.PauseCollection != nil && sub.PauseCollection.Behavior == "mark_uncollectible":
		s.finalize(inv)
		s.giveUp(inv)
	case sub.PauseCollection != nil:
		inv.AutoAdvance = false
	default:
		s.at(s.clockOf(sub), s.now(sub).Add(draftFor), func() { s.collectDraft(sub, inv) })
	}
}

// collectDraft is the end of the draft hour.
func (s *Stripe) collectDraft(sub *Subscription, inv *Invoice) {
	if inv.Status != InvoiceDraft || !inv.AutoAdvance || sub.ended() || sub.Status == Unpaid || sub.Status == Paused {
		return
	}
	s.finalize(inv)
	s.attempt(inv)
}

// takeOwed is what was put off to the next invoice, which then is owed no more.
func (u *Subscription) takeOwed() []Line {
	owed := u.owed
	u.owed = nil
	return owed
}
