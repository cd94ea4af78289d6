package webhooks_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks"
)

// catalog has two plans in force, and one that left.
func catalog() func(string) (webhooks.PricedPlan, bool) {
	plan := func(key string, rank int32, removed bool, prices ...string) subscriptions.PlanRevision {
		return subscriptions.PlanRevision{Plan: subscriptions.Plan{Key: key, Rank: rank, StripePrices: prices}, Removed: removed}
	}
	return webhooks.PricesOf([]subscriptions.PlanRevision{
		plan("pro", 10, false, "price_pro_month", "price_pro_year"), plan("team", 20, false, "price_team"),
		plan("legacy", 30, true, "price_legacy"),
	})
}

func TestWhatASubscriptionMeans(t *testing.T) {
	t.Parallel()
	var (
		year  = subscriptions.Period{Start: day(2025, 7, 1), End: day(2026, 7, 1)}
		ended = day(2026, 2, 10)
		item  = func(id, price string, p subscriptions.Period) webhooks.SubscriptionItem {
			return webhooks.SubscriptionItem{ID: id, PriceID: price, Quantity: 1, Period: p}
		}
		march = subscriptions.Period{Start: day(2026, 3, 1), End: day(2026, 4, 1)}
	)
	for name, c := range map[string]struct {
		sees func(*webhooks.Sighting)
		want func(*webhooks.SourceSnapshot)
	}{
		"active":              {func(*webhooks.Sighting) {}, func(*webhooks.SourceSnapshot) {}},
		"a connected account": {func(s *webhooks.Sighting) { s.Account = "acct_1" }, func(s *webhooks.SourceSnapshot) { s.State.Key.Account = "acct_1" }},
		"the period's payment": {func(s *webhooks.Sighting) {
			s.Invoices = []webhooks.InvoiceObject{invoiceOf("paid", invoiceLine(2500, february.Start, february.End))}
		}, func(s *webhooks.SourceSnapshot) { s.State.PaymentState = "paid" }},
		"past due": {
			func(s *webhooks.Sighting) {
				s.Subscription.Status = "past_due"
				s.Invoices = []webhooks.InvoiceObject{invoiceOf("open", invoiceLine(2500, february.Start, february.End))}
			},
			func(s *webhooks.SourceSnapshot) { s.State.Status, s.State.PaymentState = "past_due", "failed" },
		},
		"several of it":         {func(s *webhooks.Sighting) { s.Subscription.Items[0].Quantity = 7 }, func(s *webhooks.SourceSnapshot) { s.State.Quantity = 7 }},
		"more than can be kept": {func(s *webhooks.Sighting) { s.Subscription.Items[0].Quantity = math.MaxInt64 }, func(s *webhooks.SourceSnapshot) { s.State.Quantity = math.MaxInt32 }},
		"the highest rank": {
			func(s *webhooks.Sighting) {
				s.Subscription.Items = append(s.Subscription.Items, item("si_team", "price_team", year))
			},
			func(s *webhooks.SourceSnapshot) {
				s.State.PlanKey, s.State.Period = "team", year
				s.Prices = []string{"price_pro_month", "price_team"}
			},
		},
		"an add-on that began later": {
			func(s *webhooks.Sighting) {
				s.Subscription.Items = append(s.Subscription.Items, item("si_addon", "price_addon", march))
			},
			func(s *webhooks.SourceSnapshot) { s.Prices = []string{"price_addon", "price_pro_month"} },
		},
		"two of one rank: the one that began last": {
			func(s *webhooks.Sighting) {
				s.Subscription.Items = append(s.Subscription.Items, item("si_aa", "price_pro_year", march))
			},
			func(s *webhooks.SourceSnapshot) {
				s.State.Period, s.Prices = march, []string{"price_pro_month", "price_pro_year"}
			},
		},
		"an unknown price": {
			func(s *webhooks.Sighting) { s.Subscription.Items[0].PriceID = "price_new" },
			func(s *webhooks.SourceSnapshot) {
				s.State.PlanKey, s.State.PlanUnresolved, s.Prices = "", true, []string{"price_new"}
			},
		},
		"unknown prices advance the period": {
			func(s *webhooks.Sighting) {
				s.Subscription.Items = []webhooks.SubscriptionItem{item("si_z", "price_x", february), item("si_a", "price_y", march)}
			},
			func(s *webhooks.SourceSnapshot) {
				s.State.PlanKey, s.State.Period, s.State.PlanUnresolved, s.Prices = "", march, true, []string{"price_x", "price_y"}
			},
		},
		"the price of a plan that left": {
			func(s *webhooks.Sighting) { s.Subscription.Items[0].PriceID = "price_legacy" },
			func(s *webhooks.SourceSnapshot) {
				s.State.PlanKey, s.State.PlanUnresolved, s.Prices = "", true, []string{"price_legacy"}
			},
		},
		"set to end, as of old": {
			func(s *webhooks.Sighting) {
				s.Subscription.CancelAtPeriodEnd, s.Subscription.CancelAt, s.Subscription.CanceledAt = true, &february.End, &ended
			},
			func(s *webhooks.SourceSnapshot) { s.State.CancelAt = &february.End },
		},
		"set to end by the boolean alone": {func(s *webhooks.Sighting) { s.Subscription.CancelAtPeriodEnd = true }, func(s *webhooks.SourceSnapshot) { s.State.CancelAt = &february.End }},
		"set to end without the boolean":  {func(s *webhooks.Sighting) { s.Subscription.CancelAt = &march.End }, func(s *webhooks.SourceSnapshot) { s.State.CancelAt = &march.End }},
		"canceled_at means nothing":       {func(s *webhooks.Sighting) { s.Subscription.CanceledAt = &ended }, func(*webhooks.SourceSnapshot) {}},
		"ended": {
			func(s *webhooks.Sighting) {
				s.Subscription.Status, s.Subscription.EndedAt, s.Subscription.CancelAtPeriodEnd = "canceled", &ended, true
			},
			func(s *webhooks.SourceSnapshot) { s.State.Status, s.State.EndedAt = "canceled", &ended },
		},
		"paid too late": {
			func(s *webhooks.Sighting) {
				s.Subscription.Status, s.Subscription.EndedAt = "canceled", &ended
				s.Invoices = []webhooks.InvoiceObject{paidAt(invoiceOf("paid", invoiceLine(2500, february.Start, february.End)), ended.Add(time.Hour))}
			},
			func(s *webhooks.SourceSnapshot) {
				s.State.Status, s.State.EndedAt, s.State.PaymentState = "canceled", &ended, "failed"
			},
		},
		"on a trial":                 {func(s *webhooks.Sighting) { s.Subscription.Status = "trialing" }, func(s *webhooks.SourceSnapshot) { s.State.Status = "trialing" }},
		"incomplete":                 {func(s *webhooks.Sighting) { s.Subscription.Status = "incomplete" }, func(s *webhooks.SourceSnapshot) { s.State.Status = "incomplete" }},
		"paused":                     {func(s *webhooks.Sighting) { s.Subscription.Status = "paused" }, func(s *webhooks.SourceSnapshot) { s.State.Status = "paused" }},
		"collection paused is not":   {func(s *webhooks.Sighting) { s.Subscription.PauseCollection = "void" }, func(*webhooks.SourceSnapshot) {}},
		"a change that is not paid":  {func(s *webhooks.Sighting) { s.Subscription.PendingUpdate = true }, func(*webhooks.SourceSnapshot) {}},
		"a status that nobody knows": {func(s *webhooks.Sighting) { s.Subscription.Status = "hibernating" }, func(s *webhooks.SourceSnapshot) { s.State.Status, s.UnknownStatus = "hibernating", "hibernating" }},
		"a test clock":               {func(s *webhooks.Sighting) { s.Subscription.TestClock = "clock_1" }, func(s *webhooks.SourceSnapshot) { s.State.TestClock = true }},
		"test mode": {
			func(s *webhooks.Sighting) { s.Subscription.Livemode, s.Mode = false, webhooks.ModeTest },
			func(s *webhooks.SourceSnapshot) { s.State.Key.Livemode = false },
		},
	} {
		seen := webhooks.Sighting{
			Mode: webhooks.ModeLive, Plans: catalog(),
			Subscription: webhooks.SubscriptionObject{
				ID: "sub_acme", Livemode: true, Status: "active", Created: day(2026, 1, 1), Items: []webhooks.SubscriptionItem{mainItem},
			},
		}
		c.sees(&seen)
		want := webhooks.SourceSnapshot{
			Prices: []string{"price_pro_month"},
			State: subscriptions.SourceState{
				Key:    subscriptions.SubscriptionKey{Source: subscriptions.SourceStripe, Livemode: true, SourceID: "sub_acme"},
				Status: "active", PaymentState: "none", PlanKey: "pro", Quantity: 1, Period: february,
				SourceFacts: subscriptions.SourceFacts{SourceCreated: day(2026, 1, 1)},
			},
		}
		c.want(&want)
		for range 2 {
			got, err := webhooks.SnapshotOf(seen)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateComparable(subscriptions.Interval{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			slices.Reverse(seen.Subscription.Items)
		}
	}
}

func TestTheOtherModesSubscriptionHasNoMeaning(t *testing.T) {
	t.Parallel()
	_, err := webhooks.SnapshotOf(webhooks.Sighting{Mode: webhooks.ModeTest, Plans: catalog(), Subscription: webhooks.SubscriptionObject{Livemode: true}})
	if !errors.Is(err, webhooks.ErrOtherMode) {
		t.Errorf("a live subscription in test mode: %v", err)
	}
}
