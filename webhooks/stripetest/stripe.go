package stripetest

import (
	"sync"
	"time"
)

// DunningEnd is what becomes of a subscription whose last retry has failed.
type DunningEnd string

// The ends of dunning that an account can choose.
const (
	DunningCancels DunningEnd = "cancel"
	DunningUnpaid  DunningEnd = "unpaid"
	DunningLeaves  DunningEnd = "past_due"
)

// Options are the settings of the fake account. The zero Options are usable.
type Options struct {
	// Seed decides every id.
	Seed uint64
	// Start is where the clock stands at first, cut to the second; default
	// 2024-07-01 00:00 UTC.
	Start time.Time
	// Version is the account's default API version: that of calls without a
	// Stripe-Version and of what GET /v1/events lists. Default V20240620.
	Version Version
	// BillingMode is that of subscriptions that choose none; default Classic.
	BillingMode BillingMode
	// RenewalLag is the time between the end of a period and the change of the
	// subscription; default 16 s, as recorded. Negative means none.
	RenewalLag time.Duration
	// Retries are the pauses between the attempts to collect an invoice; default 3,
	// 5 and 7 days. AfterDunning is what follows the last; default DunningCancels.
	Retries      []time.Duration
	AfterDunning DunningEnd
	// TestKey and LiveKey are the API keys of the two modes; default
	// "sk_test_fake" and "sk_live_fake".
	TestKey, LiveKey string
}

// Stripe is the fake account, and the accounts connected to it.
type Stripe struct {
	options Options
	api     *api

	mu        sync.Mutex
	ids       ids
	tasks     int
	clocks    map[string]*clock
	accounts  map[string]bool
	prices    map[string]*Price
	customers map[string]*Customer
	subs      table[Subscription]
	invoices  table[Invoice]
	sessions  table[Session]
	charges   table[Charge]
	disputes  table[Dispute]
	schedules map[string]*Schedule
	events    table[Event]
	history   map[string][]*Subscription
	muted     bool
	request   string
}

// New is a fake account without objects.
func New(o Options) *Stripe {
	o = o.withDefaults()
	s := &Stripe{
		options: o, ids: ids{seed: o.Seed, next: map[string]int{}},
		clocks: map[string]*clock{"": {now: o.Start}}, prices: map[string]*Price{},
		accounts:  map[string]bool{},
		customers: map[string]*Customer{}, schedules: map[string]*Schedule{}, history: map[string][]*Subscription{},
		subs: newTable[Subscription](), invoices: newTable[Invoice](), sessions: newTable[Session](),
		charges: newTable[Charge](), disputes: newTable[Dispute](), events: newTable[Event](),
	}
	s.api = newAPI(s)
	return s
}

func (o Options) withDefaults() Options {
	if o.Start.IsZero() {
		o.Start = time.Date(2024, 7, 1, 0, 0, 0, 0, time.UTC)
	}
	o.Start = o.Start.UTC().Truncate(time.Second)
	if o.RenewalLag == 0 {
		o.RenewalLag = 16 * time.Second
	}
	o.RenewalLag = max(o.RenewalLag, 0)
	if o.Retries == nil {
		o.Retries = []time.Duration{3 * day, 5 * day, 7 * day}
	}
	o.Version = orElse(o.Version, V20240620)
	o.BillingMode = orElse(o.BillingMode, Classic)
	o.AfterDunning = orElse(o.AfterDunning, DunningCancels)
	o.TestKey, o.LiveKey = orElse(o.TestKey, "sk_test_fake"), orElse(o.LiveKey, "sk_live_fake")
	return o
}

// Key is the API key of a mode.
func (s *Stripe) Key(livemode bool) string {
	if livemode {
		return s.options.LiveKey
	}
	return s.options.TestKey
}

// Mute turns the making of events off, or on again. What changes meanwhile has no event
// at all, as after an event generation failure of Stripe: only a comparison of the
// objects finds it.
func (s *Stripe) Mute(off bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.muted = off
}

// enter and leave are the frame of an action from outside: events made in it carry the id
// of its request.
func (s *Stripe) enter() {
	s.mu.Lock()
	s.request = s.ids.make("req")
}

func (s *Stripe) leave() {
	s.request = ""
	s.mu.Unlock()
}

// table holds objects by id in the order of their making, and for a subscription those
// that belong to it.
type table[T any] struct {
	byID  map[string]*T
	at    map[string]int
	order []*T
	bySub map[string][]*T
}

func newTable[T any]() table[T] {
	return table[T]{byID: map[string]*T{}, at: map[string]int{}, bySub: map[string][]*T{}}
}

func (t *table[T]) add(id, sub string, object *T) {
	t.byID[id], t.at[id] = object, len(t.order)
	t.order = append(t.order, object)
	if sub != "" {
		t.bySub[sub] = append(t.bySub[sub], object)
	}
}

func copies[T any](of []*T, clone func(*T) *T) []T {
	out := make([]T, 0, len(of))
	for _, one := range of {
		out = append(out, *clone(one))
	}
	return out
}

func orElse[T comparable](value, other T) T {
	var zero T
	if value == zero {
		return other
	}
	return value
}
