package stripetest

import (
	"maps"
	"reflect"
	"slices"
	"time"
)

// Status is a subscription's status.
type Status string

// The statuses of Stripe.
const (
	Incomplete        Status = "incomplete"
	IncompleteExpired Status = "incomplete_expired"
	Trialing          Status = "trialing"
	Active            Status = "active"
	PastDue           Status = "past_due"
	Unpaid            Status = "unpaid"
	Canceled          Status = "canceled"
	Paused            Status = "paused"
)

// BillingMode decides what a change of the interval does to the cycle.
type BillingMode string

// The billing modes. Classic restarts the cycle when the interval changes and knows one
// interval per subscription; Flexible leaves start and anchor, and items may differ.
const (
	Classic  BillingMode = "classic"
	Flexible BillingMode = "flexible"
)

// Subscription is a subscription as it is at one moment; times are zero if not set.
type Subscription struct {
	ID, Customer, Account string
	Livemode              bool
	TestClock             string
	Status                Status
	BillingMode           BillingMode
	Created               time.Time
	// Anchor is where cycles are counted from.
	Anchor time.Time
	Items  []Item
	// CancelAt is set by both ways to schedule an end, CanceledAt is when that was
	// asked for, EndedAt alone says that it has ended.
	CancelAtPeriodEnd             bool
	CancelAt, CanceledAt, EndedAt time.Time
	// CancelReason is that of cancellation_details.
	CancelReason         string
	TrialStart, TrialEnd time.Time
	TrialMissing         MissingMethod
	PauseCollection      *PauseCollection
	PendingUpdate        *PendingUpdate
	// PausedBecause is why the status is paused: "trial_end_without_payment_method"
	// or "requested".
	PausedBecause string
	Metadata      map[string]string
	LatestInvoice string
	// Schedule is the id of the schedule that has it, if any.
	Schedule string
	// Begun is why the running period began: one of the kinds of Period.
	Begun string

	owed []Line
}

// Item is one price of a subscription and the period that it is in.
type Item struct {
	ID       string
	Price    Price
	Quantity int64
	// Start and End are the item's period. Items differ in them only if they differ in
	// their intervals.
	Start, End, Created time.Time
}

// MissingMethod is what a trial's end does if there is no payment method.
type MissingMethod string

// The behaviours of trial_settings.
const (
	MissingInvoices MissingMethod = "create_invoice"
	MissingPauses   MissingMethod = "pause"
	MissingCancels  MissingMethod = "cancel"
)

// PauseCollection stops the collecting of invoices; status and periods go on.
type PauseCollection struct {
	// Behavior is "void", "keep_as_draft" or "mark_uncollectible".
	Behavior string
	// ResumesAt ends it by itself, if set.
	ResumesAt time.Time
}

// PendingUpdate is a change that waits for its invoice to be paid.
type PendingUpdate struct {
	ExpiresAt time.Time
	// Items are the items as they will be, Anchor the new anchor if it moves.
	Items  []Item
	Anchor time.Time
	// Invoice is what has to be paid.
	Invoice string

	base time.Time
}

func (u *Subscription) owner() owner {
	return owner{object: "subscription", id: u.ID, sub: u.ID, account: u.Account, clock: u.TestClock, livemode: u.Livemode}
}

func (u *Subscription) ended() bool { return u.Status == Canceled || u.Status == IncompleteExpired }

// next is the earliest end of an item's period.
func (u *Subscription) next() time.Time {
	end := u.Items[0].End
	for _, item := range u.Items {
		if item.End.Before(end) {
			end = item.End
		}
	}
	return end
}

// last is the latest end of an item's period.
func (u *Subscription) last() time.Time {
	end := u.Items[0].End
	for _, item := range u.Items {
		if item.End.After(end) {
			end = item.End
		}
	}
	return end
}

func (u *Subscription) item(id string) int {
	for at, item := range u.Items {
		if item.ID == id {
			return at
		}
	}
	return -1
}

func (u *Subscription) clone() *Subscription {
	out := *u
	out.Items, out.Metadata, out.owed = slices.Clone(u.Items), maps.Clone(u.Metadata), slices.Clone(u.owed)
	if u.PauseCollection != nil {
		pause := *u.PauseCollection
		out.PauseCollection = &pause
	}
	if u.PendingUpdate != nil {
		pending := *u.PendingUpdate
		pending.Items = slices.Clone(pending.Items)
		out.PendingUpdate = &pending
	}
	return &out
}

// Subscription is the subscription of an id as it is now.
func (s *Stripe) Subscription(id string) (Subscription, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub, ok := s.subs.byID[id]
	if !ok {
		return Subscription{}, missing("subscription", id)
	}
	return *sub.clone(), nil
}

// Subscriptions are all subscriptions, ended ones too, oldest first.
func (s *Stripe) Subscriptions() []Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	return copies(s.subs.order, (*Subscription).clone)
}

// live is a subscription that can still be changed.
func (s *Stripe) live(id string) (*Subscription, error) {
	sub, ok := s.subs.byID[id]
	switch {
	case !ok:
		return nil, missing("subscription", id)
	case sub.ended():
		return nil, refused("id", "A canceled subscription can only update its cancellation_details and metadata.")
	}
	return sub, nil
}

func (s *Stripe) clockOf(sub *Subscription) *clock { return s.clocks[sub.TestClock] }

func (s *Stripe) now(sub *Subscription) time.Time { return s.clockOf(sub).now }

// change applies a change to a subscription and tells of it: the events given, each with
// the subscription as it is then, and customer.subscription.updated at last
// if anything differs.
func (s *Stripe) change(sub *Subscription, apply func(), also ...string) {
	before := sub.clone()
	apply()
	s.told(sub, before, also...)
}

func (s *Stripe) told(sub, before *Subscription, also ...string) {
	after := s.record(sub)
	for _, typ := range also {
		s.emit(happening{typ: typ, object: after})
	}
	if !reflect.DeepEqual(before, after) {
		s.emit(happening{typ: "customer.subscription.updated", object: after, before: before})
	}
	s.follow(sub)
}

// record keeps a snapshot for the truth and returns it.
func (s *Stripe) record(sub *Subscription) *Subscription {
	after := sub.clone()
	s.history[sub.ID] = append(s.history[sub.ID], after)
	return after
}
