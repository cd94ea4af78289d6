package stripetest

import "time"

// Schedule is a change of price that waits for the end of the running period.
type Schedule struct {
	ID, Subscription, Customer, Account string
	Livemode                            bool
	TestClock                           string
	// Status is "active", "released", "canceled" or "aborted".
	Status string
	// Price is what the first item changes to, at At.
	Price           string
	At, Created     time.Time
	ReleasedAt      time.Time
	CurrentStart    time.Time
	firstPhasePrice string
}

func (c *Schedule) owner() owner {
	return owner{
		object: "subscription_schedule", id: c.ID, sub: c.Subscription, account: c.Account, clock: c.TestClock,
		livemode: c.Livemode,
	}
}

// SchedulePrice makes a schedule that changes the price of a subscription's first item at
// the end of its running period, and then lets the subscription go.
func (s *Stripe) SchedulePrice(id, price string) (Schedule, error) {
	s.enter()
	defer s.leave()
	sub, err := s.live(id)
	if err != nil {
		return Schedule{}, err
	}
	to, ok := s.prices[price]
	switch {
	case !ok:
		return Schedule{}, missing("price", price)
	case sub.Schedule != "":
		return Schedule{}, refused("from_subscription", "The subscription is already attached to a schedule.")
	case sub.BillingMode == Classic && len(sub.Items) > 1 && !sameInterval(*to, sub.Items[0].Price):
		return Schedule{}, refused("items", "All prices on a subscription must have the same `recurring.interval`.")
	}
	item := sub.Items[0]
	c := &Schedule{
		ID: s.ids.make("sub_sched"), Subscription: sub.ID, Customer: sub.Customer, Account: sub.Account,
		Livemode: sub.Livemode, TestClock: sub.TestClock, Status: "active", Price: to.ID, At: item.End,
		Created: s.now(sub), CurrentStart: item.Start, firstPhasePrice: item.Price.ID,
	}
	s.schedules[c.ID] = c
	s.emit(happening{typ: "subscription_schedule.created", object: c.clone()})
	s.change(sub, func() { sub.Schedule = c.ID })
	return *c, nil
}

// ReleaseSchedule lets a subscription go on without its schedule.
func (s *Stripe) ReleaseSchedule(id string) error {
	s.enter()
	defer s.leave()
	sub, err := s.live(id)
	if err != nil {
		return err
	}
	if sub.Schedule == "" {
		return refused("id", "The subscription has no schedule.")
	}
	s.release(sub)
	return nil
}

func (s *Stripe) release(sub *Subscription) {
	c := s.schedules[sub.Schedule]
	before := c.clone()
	c.Status, c.ReleasedAt = "released", s.now(sub)
	s.emit(happening{typ: "subscription_schedule.updated", object: c.clone(), before: before})
	s.emit(happening{typ: "subscription_schedule.released", object: c.clone()})
	s.change(sub, func() { sub.Schedule = "" })
}

// enterPhase changes the price at the boundary that a schedule waits for.
func (s *Stripe) enterPhase(sub *Subscription, due time.Time) {
	c := s.schedules[sub.Schedule]
	if c == nil || c.At.After(due) {
		return
	}
	to, item := *s.prices[c.Price], &sub.Items[0]
	if sub.BillingMode == Classic && !sameInterval(item.Price, to) {
		sub.Anchor = item.End
	}
	item.Price = to
	before := c.clone()
	c.CurrentStart = item.End
	s.emit(happening{typ: "subscription_schedule.updated", object: c.clone(), before: before})
}

// leavePhase releases the subscription once the last phase has begun.
func (s *Stripe) leavePhase(sub *Subscription) {
	if c := s.schedules[sub.Schedule]; c != nil && !c.CurrentStart.Before(c.At) {
		s.release(sub)
	}
}

func (s *Stripe) endSchedule(sub *Subscription, e ending) {
	c := s.schedules[sub.Schedule]
	if c == nil {
		return
	}
	c.Status = "canceled"
	if e.reason == "payment_failed" {
		c.Status = "aborted"
	}
	s.emit(happening{typ: "subscription_schedule." + c.Status, object: c.clone()})
}

func (c *Schedule) clone() *Schedule {
	out := *c
	return &out
}
