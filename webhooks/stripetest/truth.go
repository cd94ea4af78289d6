package stripetest

import (
	"slices"
	"time"
)

// The kinds of Period.Kind: why a period began.
const (
	KindCreated     = "created"
	KindCycle       = "cycle"
	KindTrialEnd    = "trial_end"
	KindAnchorReset = "anchor_reset"
	KindResume      = "resume"
	// KindPlanChange is another item that became the plan and began later.
	KindPlanChange = "plan_change"
)

// The states of Period.Payment.
const (
	// PeriodUnbilled is a period without an invoice.
	PeriodUnbilled = "none"
	// PeriodPending is one whose invoice is a draft, or open without a failure yet.
	PeriodPending = "pending"
	PeriodPaid    = "paid"
	// PeriodFailed is one whose invoice is open after a failure, or given up.
	PeriodFailed = "failed"
	// PeriodVoid is one whose invoice was voided.
	PeriodVoid = "void"
)

// Truth is what really became of a subscription. It comes from the model itself, so that
// nothing of what is rendered, sent or lost can change it.
type Truth struct {
	// Subscription is the subscription as it is now.
	Subscription Subscription
	// Periods are the periods that began, oldest first.
	Periods []Period
}

// Period is one period of a subscription's plan item, as it was last known: the running
// one as it is now, an earlier one as it was when the next began.
type Period struct {
	// Kind is why it began.
	Kind string
	// Start is inside it, End is where it would have ended when last known; Closed is
	// where it really did, zero while it runs.
	Start, End, Closed time.Time
	// Plan is the plan item, Items are all of them.
	Plan   Item
	Items  []Item
	Status Status
	// CancelAt is the scheduled end, zero if there is none.
	CancelAt time.Time
	// Payment is the state of the invoice with a line for the whole period of the plan
	// item; of several the best. Invoices are their ids.
	Payment  string
	Invoices []string
}

// Truth tells what became of a subscription. Rank tells which item is the plan: the one
// with the highest rank of its price, those below zero are no plans. Without a rank, or
// without a plan, the first item counts.
func (s *Stripe) Truth(id string, rank func(price string) int) (Truth, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub, ok := s.subs.byID[id]
	if !ok {
		return Truth{}, missing("subscription", id)
	}
	truth := Truth{Subscription: *sub.clone()}
	for _, then := range s.history[id] {
		truth.learn(then.clone(), planOf(then, rank))
	}
	for at := range truth.Periods {
		s.judge(&truth.Periods[at], id)
	}
	return truth, nil
}

// learn takes in the next state. One whose plan item began earlier than the running
// period is about another item and only tells the status.
func (t *Truth) learn(then *Subscription, plan Item) {
	n := len(t.Periods)
	if n == 0 || plan.Start.After(t.Periods[n-1].Start) {
		if n > 0 {
			t.Periods[n-1].Closed = plan.Start
		}
		kind := then.Begun
		if n > 0 && t.Periods[n-1].Plan.ID != plan.ID {
			kind = KindPlanChange
		}
		t.Periods = append(t.Periods, Period{Kind: kind, Start: plan.Start})
		n++
	}
	p := &t.Periods[n-1]
	p.Status, p.CancelAt, p.Closed = then.Status, then.CancelAt, then.EndedAt
	if !plan.Start.Before(p.Start) {
		p.End, p.Plan, p.Items = plan.End, plan, then.Items
	}
}

func planOf(sub *Subscription, rank func(string) int) Item {
	best, highest := sub.Items[0], -1
	if rank == nil {
		return best
	}
	for _, item := range sub.Items {
		if r := rank(item.Price.ID); r > highest {
			best, highest = item, r
		}
	}
	return best
}

// judge finds the invoices that pay for a period: those with a line for all of it that is
// no proration.
func (s *Stripe) judge(p *Period, sub string) {
	p.Payment = PeriodUnbilled
	order := []string{PeriodUnbilled, PeriodVoid, PeriodPending, PeriodFailed, PeriodPaid}
	for _, inv := range s.invoices.bySub[sub] {
		pays := slices.ContainsFunc(inv.Lines, func(line Line) bool {
			return line.Item == p.Plan.ID && !line.Proration && line.Start.Equal(p.Start)
		})
		if !pays {
			continue
		}
		p.Invoices = append(p.Invoices, inv.ID)
		if state := inv.payment(); slices.Index(order, state) > slices.Index(order, p.Payment) {
			p.Payment = state
		}
	}
}

func (i *Invoice) payment() string {
	switch {
	case i.Status == InvoicePaid:
		return PeriodPaid
	case i.Status == InvoiceVoid:
		return PeriodVoid
	case i.Status == InvoiceUncollectible, i.Status == InvoiceOpen && i.AttemptCount > 0:
		return PeriodFailed
	default:
		return PeriodPending
	}
}
