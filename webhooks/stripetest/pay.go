package stripetest

import "time"

// canPay reports whether an attempt to collect the amount would succeed now.
func (s *Stripe) canPay(c *Customer, amount int64) bool {
	return amount+min(c.Balance, 0) <= 0 || c.Payment == PaymentSucceeds
}

// attempt tries to collect an open invoice and draws the consequences.
func (s *Stripe) attempt(inv *Invoice) {
	if inv.AmountDue == 0 {
		s.settle(inv)
		return
	}
	c := s.customers[inv.Customer]
	switch c.Payment {
	case PaymentSucceeds:
		charge := s.charge(inv, true)
		s.emit(happening{typ: "charge.succeeded", object: charge.clone()})
		s.emit(happening{typ: "payment_intent.succeeded", object: intent{charge: charge.clone(), status: "succeeded"}})
		inv.AttemptCount++
		inv.Charge = charge.ID
		s.settle(inv)
	case PaymentDelayed:
		charge := s.charge(inv, false)
		charge.Pending = true
		s.emit(happening{typ: "charge.pending", object: charge.clone()})
		s.emit(happening{typ: "payment_intent.processing", object: intent{charge: charge.clone(), status: "processing"}})
	default:
		s.fail(inv, c.Payment)
	}
}

// settle makes an invoice paid.
func (s *Stripe) settle(inv *Invoice) {
	s.changeInvoice(inv, func() {
		inv.Status, inv.PaidAt, inv.AmountPaid = InvoicePaid, s.clocks[inv.TestClock].now, inv.AmountDue
		inv.NextAttempt, inv.AutoAdvance = time.Time{}, false
	}, "invoice.paid", "invoice.payment_succeeded")
	if sub := s.subs.byID[inv.Subscription]; sub != nil {
		s.paid(sub, inv)
	}
}

// paid is what a payment does to its subscription: to one that has ended, nothing.
func (s *Stripe) paid(sub *Subscription, inv *Invoice) {
	switch {
	case sub.PendingUpdate != nil && sub.PendingUpdate.Invoice == inv.ID:
		s.applyPending(sub)
	case sub.Status == Incomplete && sub.LatestInvoice == inv.ID,
		sub.Status == Unpaid && sub.LatestInvoice == inv.ID,
		sub.Status == PastDue && s.latestFinalized(sub) == inv:
		s.change(sub, func() { sub.Status = Active })
	}
}

// latestFinalized is the newest invoice that is no draft and not that of a change which
// waits.
func (s *Stripe) latestFinalized(sub *Subscription) *Invoice {
	all := s.invoices.bySub[sub.ID]
	for at := len(all) - 1; at >= 0; at-- {
		waits := sub.PendingUpdate != nil && sub.PendingUpdate.Invoice == all[at].ID
		if all[at].Status != InvoiceDraft && !waits {
			return all[at]
		}
	}
	return nil
}

// fail is an attempt that brought nothing.
func (s *Stripe) fail(inv *Invoice, why Payment) {
	if why != PaymentMethodMissing {
		charge := s.charge(inv, false)
		status := "requires_payment_method"
		if why == PaymentNeedsAction {
			status = "requires_action"
		} else {
			inv.Charge = charge.ID
			s.emit(happening{typ: "charge.failed", object: charge.clone()})
		}
		typ := map[string]string{
			"requires_action": "payment_intent.requires_action", "requires_payment_method": "payment_intent.payment_failed",
		}[status]
		s.emit(happening{typ: typ, object: intent{charge: charge.clone(), status: status}})
	}
	told := []string{"invoice.payment_failed"}
	if why == PaymentNeedsAction {
		told = append(told, "invoice.payment_action_required")
	}
	s.changeInvoice(inv, func() {
		inv.AttemptCount++
		inv.NextAttempt = s.retryAt(inv)
	}, told...)
	if sub := s.subs.byID[inv.Subscription]; sub != nil && !sub.ended() {
		s.failed(sub, inv)
	}
}

// retryAt is when the next attempt is due, zero if there is none.
func (s *Stripe) retryAt(inv *Invoice) time.Time {
	sub := s.subs.byID[inv.Subscription]
	waits := sub != nil && sub.PendingUpdate != nil && sub.PendingUpdate.Invoice == inv.ID
	if sub == nil || sub.Status == Incomplete || sub.ended() || waits || inv.AttemptCount > len(s.options.Retries) {
		return time.Time{}
	}
	return s.clocks[inv.TestClock].now.Add(s.options.Retries[inv.AttemptCount-1])
}

// failed is what a failure does to the subscription.
func (s *Stripe) failed(sub *Subscription, inv *Invoice) {
	if sub.Status == Incomplete || sub.PendingUpdate != nil && sub.PendingUpdate.Invoice == inv.ID {
		return
	}
	if sub.Status == Active || sub.Status == Trialing {
		s.change(sub, func() { sub.Status = PastDue })
	}
	if due := inv.NextAttempt; !due.IsZero() {
		s.at(s.clockOf(sub), due, func() {
			if inv.Status == InvoiceOpen && inv.NextAttempt.Equal(due) && sub.Status != Unpaid && !sub.ended() {
				s.attempt(inv)
			}
		})
		return
	}
	if sub.Status == PastDue {
		s.endDunning(sub)
	}
}

func (s *Stripe) endDunning(sub *Subscription) {
	switch s.options.AfterDunning {
	case DunningCancels:
		s.end(sub, ending{at: s.now(sub), reason: "payment_failed"})
	case DunningUnpaid:
		s.change(sub, func() { sub.Status = Unpaid })
	case DunningLeaves:
	}
}

// PayInvoice collects an invoice by hand, a draft too. It fails if the payment does, and
// for an invoice that is paid or void.
func (s *Stripe) PayInvoice(id string) error {
	s.enter()
	defer s.leave()
	inv, err := s.payable(id)
	if err != nil {
		return err
	}
	if inv.AmountDue > 0 && s.customers[inv.Customer].Deleted {
		return missing("customer", inv.Customer)
	}
	s.attempt(inv)
	if inv.Status != InvoicePaid {
		return declined()
	}
	return nil
}

// PayInvoiceOutOfBand marks an invoice as paid elsewhere: no charge, but paid.
func (s *Stripe) PayInvoiceOutOfBand(id string) error {
	s.enter()
	defer s.leave()
	inv, err := s.payable(id)
	if err != nil {
		return err
	}
	inv.PaidOutOfBand = true
	s.settle(inv)
	return nil
}

func (s *Stripe) payable(id string) (*Invoice, error) {
	if inv, ok := s.invoices.byID[id]; ok && inv.Status == InvoiceDraft {
		s.finalize(inv)
	}
	return s.unpaid(id)
}

// SettlePayment ends the wait for a delayed payment of an invoice, with money or without.
func (s *Stripe) SettlePayment(invoice string, succeeds bool) error {
	s.enter()
	defer s.leave()
	inv, err := s.unpaid(invoice)
	if err != nil {
		return err
	}
	s.settlePayment(inv, succeeds)
	return nil
}

func (s *Stripe) settlePayment(inv *Invoice, succeeds bool) {
	c := s.customers[inv.Customer]
	before := c.Payment
	c.Payment = PaymentDeclines
	if succeeds {
		c.Payment = PaymentSucceeds
	}
	s.attempt(inv)
	c.Payment = before
}
