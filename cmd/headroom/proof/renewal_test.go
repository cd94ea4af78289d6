package proof_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

const (
	renewals      = 36
	renewingPlan  = "renewing"
	renewingPrice = "price_renewing"
	renewingSign  = "whsec_of_the_proof"
)

// Stripe's clock moves on, and what follows is timed: from the delivery to the first
// decision under the new period, whichever instance takes it, and until every instance
// knows the period.
func TestARenewalAtStripeIsAFreshPeriodInEveryInstance(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{key: renewingPlan, quota: 100_000})
	b := h.bill()
	all := []*instance{h.start(), h.start(), h.start()}
	var decided, known []time.Duration
	for n := range renewals {
		ws := fmt.Sprintf("renewing_%d", n)
		sub := b.subscribe(ws)
		h.eventually("it has subscribed", func() bool { return h.pays(ws) != "" })
		first := h.pays(ws)
		load := h.ask(2, ws)
		load.until(5, "it is allowed in the first period", func(d schemas.DecisionMade) bool {
			return d.Allowed && d.SubscriptionID != nil && *d.SubscriptionID == first
		})
		if _, err := b.stripe.Renew(sub.ID); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		b.deliver()
		var second string
		load.until(1, "a decision is measured against another period", func(d schemas.DecisionMade) bool {
			if d.SubscriptionID != nil && *d.SubscriptionID != first {
				second = *d.SubscriptionID
			}
			return second != ""
		})
		decided = append(decided, time.Since(begun))
		for _, i := range all {
			h.eventually("an instance knows the period", func() bool { return i.periodOf(t, ws) == second })
		}
		known = append(known, time.Since(begun))
		load.until(1, "the counters are fresh", func(d schemas.DecisionMade) bool {
			return d.SubscriptionID != nil && *d.SubscriptionID == second && d.Used == 1
		})
		load.halt()
		for _, d := range load.after(second) {
			if d != second {
				t.Errorf("%s: a decision was measured against period %s after one against %s", ws, d, second)
			}
		}
	}
	slices.Sort(decided)
	slices.Sort(known)
	t.Logf("%d renewals (the slowest %v): from the delivery to the first decision under the new period p50 %s, p99 %s; until each of %d instances knew it p50 %s, p99 %s",
		renewals, decided[len(decided)-4:], middle(decided), high(decided), len(all), middle(known), high(known))
}

func middle(sorted []time.Duration) time.Duration {
	return sorted[len(sorted)/2].Round(time.Millisecond / 10)
}

func high(sorted []time.Duration) time.Duration {
	return sorted[min(len(sorted)*99/100, len(sorted)-1)].Round(time.Millisecond / 10)
}

// billing is a fake Stripe whose deliveries are received and looked up.
type billing struct {
	*house
	stripe   *stripetest.Stripe
	endpoint *stripetest.Endpoint
	lookups  *webhooks.Ledger
}

// bill has the renewing plan sold, and its buyers followed.
func (h *house) bill() *billing {
	h.Helper()
	text := strings.Replace(catalogOf([]plan{{key: renewingPlan, quota: 100_000}}),
		"  "+renewingPlan+":\n", "  "+renewingPlan+":\n    stripe_prices: ["+renewingPrice+"]\n", 1)
	catalog, err := subscriptions.ParseCatalog("catalog.yaml", []byte(text))
	if err != nil {
		h.Fatal(err)
	}
	if _, err := h.store.ApplyCatalog(context.Background(), catalog); err != nil {
		h.Fatal(err)
	}
	b := &billing{house: h, stripe: stripetest.New(stripetest.Options{Start: time.Now()})}
	b.stripe.CreatePrice(stripetest.PriceParams{ID: renewingPrice, Amount: 100})
	server := httptest.NewServer(b.stripe.Handler())
	h.Cleanup(server.Close)
	api, err := webhooks.NewAPI(webhooks.APIOptions{Key: b.stripe.Key(true), URL: server.URL})
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(api.Close)
	ledger, err := webhooks.NewLedger(h.pool, webhooks.ModeLive)
	if err != nil {
		h.Fatal(err)
	}
	b.lookups = ledger
	door, err := webhooks.NewDoor(webhooks.DoorOptions{
		Secrets: []string{renewingSign}, Ledger: ledger, Log: schematest.Logger(h), Now: time.Now,
	})
	if err != nil {
		h.Fatal(err)
	}
	receiver := httptest.NewServer(door)
	h.Cleanup(receiver.Close)
	b.endpoint = b.stripe.NewEndpoint(stripetest.EndpointOptions{
		URL: receiver.URL, Secrets: []string{renewingSign}, Client: receiver.Client(),
		Wants: func(e stripetest.Event) bool { return slices.Contains(webhooks.EventTypes(), e.Type) },
	})
	h.runs(webhooks.NewWorker(webhooks.WorkerOptions{Ledger: ledger, Store: h.store, API: api, Log: schematest.Logger(h)}).Run)
	return b
}

func (b *billing) subscribe(ws string) stripetest.Subscription {
	b.Helper()
	clock := b.stripe.CreateTestClock(time.Now())
	customer := b.stripe.CreateCustomer(stripetest.CustomerParams{Livemode: true, TestClock: clock})
	sub, err := b.stripe.Subscribe(stripetest.SubscribeParams{
		Customer: customer.ID, Price: renewingPrice, Metadata: map[string]string{"workspace_id": ws},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.deliver()
	return sub
}

func (b *billing) deliver() {
	b.Helper()
	for _, d := range b.endpoint.Flush(context.Background()) {
		if d.Status != http.StatusOK {
			b.Fatalf("%s was answered %d %s, %v", d.Event.Type, d.Status, d.Answer, d.Err)
		}
	}
}

// pays is the period that a workspace is on, empty without one that is paid.
func (h *house) pays(ws string) string {
	h.Helper()
	found, err := h.store.Workspace(context.Background(), ws)
	if err != nil || found.Subscription == nil || found.Subscription.PaymentState != "paid" {
		return ""
	}
	return found.Subscription.ID
}

// periodOf is the period that an instance would measure the next decision against.
func (i *instance) periodOf(t *testing.T, ws string) string {
	t.Helper()
	info, err := i.cache.Lookup(t.Context(), ws, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return info.SubscriptionID
}

// after is the periods of the decisions that were taken later than the first one of a
// period, by the decisions' own clock, with half a second for those under way.
func (l *load) after(period string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var first time.Time
	for _, d := range l.seen {
		if d.SubscriptionID != nil && *d.SubscriptionID == period && (first.IsZero() || d.DecidedAt.Before(first)) {
			first = d.DecidedAt
		}
	}
	var periods []string
	for _, d := range l.seen {
		if d.SubscriptionID != nil && d.DecidedAt.After(first.Add(500*time.Millisecond)) {
			periods = append(periods, *d.SubscriptionID)
		}
	}
	return periods
}
