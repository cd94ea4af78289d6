package webhooks_test

import (
	"testing"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// lived is a scene of the table: what happens at Stripe, and what the rows are after it.
type lived struct {
	// before is played and delivered before the scene.
	before func(*shop) stripetest.Subscription
	scene  func(*shop, stripetest.Subscription)
	// kinds are those of the rows, oldest first.
	kinds []string
	want  func(r row, s stripetest.Subscription) bool
	// active is whether the workspace is on the newest row.
	active bool
	// version is that of payloads where they are folded, Clover if empty.
	version stripetest.Version
}

func plain(sh *shop) stripetest.Subscription { return sh.subscribe(stripetest.SubscribeParams{}) }

func flexible(sh *shop) stripetest.Subscription {
	return sh.subscribe(stripetest.SubscribeParams{BillingMode: stripetest.Flexible})
}

func trial(missing stripetest.MissingMethod) func(*shop) stripetest.Subscription {
	return func(sh *shop) stripetest.Subscription {
		sh.pay(stripetest.PaymentMethodMissing)
		return sh.subscribe(stripetest.SubscribeParams{Trial: 10 * aDay, TrialMissing: missing})
	}
}

func status(want, payment string) func(row, stripetest.Subscription) bool {
	return func(r row, _ stripetest.Subscription) bool { return r.Status == want && r.Payment == payment }
}

func onPlan(plan string, quantity int32) func(row, stripetest.Subscription) bool {
	return func(r row, _ stripetest.Subscription) bool {
		return r.Plan == plan && r.Quantity == quantity && r.Closed == nil
	}
}

// table is the status and renewal table of docs/stripe.md, each line a scene.
func table() map[string]lived {
	yes := true
	return map[string]lived{
		"active is entitled": {before: plain, kinds: []string{"created"}, want: status("active", "paid"), active: true},
		"incomplete has a row and no pointer": {before: func(sh *shop) stripetest.Subscription {
			sh.pay(stripetest.PaymentNeedsAction)
			return plain(sh)
		}, kinds: []string{"created"}, want: status("incomplete", "failed")},
		"incomplete becomes active when its first invoice is paid": {before: func(sh *shop) stripetest.Subscription {
			sh.pay(stripetest.PaymentNeedsAction)
			return plain(sh)
		}, scene: func(sh *shop, s stripetest.Subscription) {
			sh.pay(stripetest.PaymentSucceeds)
			sh.ok(sh.PayInvoice(s.LatestInvoice))
		}, kinds: []string{"created"}, want: status("active", "paid"), active: true},
		"incomplete expires and is closed": {
			before: func(sh *shop) stripetest.Subscription {
				sh.pay(stripetest.PaymentNeedsAction)
				return plain(sh)
			}, scene: func(sh *shop, _ stripetest.Subscription) { sh.pass(2 * aDay) },
			kinds: []string{"created"}, want: func(r row, _ stripetest.Subscription) bool { return r.Status == "incomplete_expired" && r.Ended != nil },
		},
		"trialing is entitled": {before: trial(stripetest.MissingInvoices), kinds: []string{"created"}, want: status("trialing", "paid"), active: true},
		"a trial ends into a paid period": {
			before: func(sh *shop) stripetest.Subscription {
				return sh.subscribe(stripetest.SubscribeParams{Trial: 10 * aDay})
			}, scene: func(sh *shop, _ stripetest.Subscription) { sh.pass(11 * aDay) },
			kinds: []string{"created", "trial_end"}, want: status("active", "paid"), active: true,
		},
		"a trial without a method pauses": {
			before: trial(stripetest.MissingPauses), scene: func(sh *shop, _ stripetest.Subscription) { sh.pass(11 * aDay) },
			kinds: []string{"created"}, want: status("paused", "paid"),
		},
		"a trial without a method is canceled": {
			before: trial(stripetest.MissingCancels), scene: func(sh *shop, _ stripetest.Subscription) { sh.pass(11 * aDay) },
			kinds: []string{"created"}, want: func(r row, _ stripetest.Subscription) bool { return r.Status == "canceled" && r.Ended != nil },
		},
		"resume begins a period": {before: trial(stripetest.MissingPauses), scene: func(sh *shop, s stripetest.Subscription) {
			sh.pass(11 * aDay)
			sh.deliver()
			sh.pay(stripetest.PaymentSucceeds)
			sh.pass(3 * aDay)
			_, err := sh.Resume(s.ID)
			sh.ok(err)
		}, kinds: []string{"created", "resume"}, want: status("active", "paid"), active: true},
		"a renewal rolls": {
			before: plain, scene: func(sh *shop, _ stripetest.Subscription) { sh.pass(32 * aDay) },
			kinds: []string{"created", "cycle"}, want: status("active", "paid"), active: true,
		},
		"a renewal counts before it is paid": {before: plain, scene: func(sh *shop, s stripetest.Subscription) {
			sh.pass(s.Items[0].End.Add(time.Minute).Sub(sh.today()))
		}, kinds: []string{"created", "cycle"}, want: status("active", "pending"), active: true},
		"a renewal that fails is past due and counts in its grace": {before: plain, scene: func(sh *shop, _ stripetest.Subscription) {
			sh.pay(stripetest.PaymentDeclines)
			sh.pass(32 * aDay)
		}, kinds: []string{"created", "cycle"}, want: status("past_due", "failed"), active: true},
		"a failed renewal recovers": {before: plain, scene: func(sh *shop, _ stripetest.Subscription) {
			sh.pay(stripetest.PaymentDeclines)
			sh.pass(29 * aDay)
			sh.deliver()
			sh.pay(stripetest.PaymentSucceeds)
			sh.pass(5 * aDay)
		}, kinds: []string{"created", "cycle"}, want: status("active", "paid"), active: true},
		"dunning that fails ends": {before: plain, scene: func(sh *shop, _ stripetest.Subscription) {
			sh.pay(stripetest.PaymentDeclines)
			sh.pass(32 * aDay)
			sh.deliver()
			sh.pass(30 * aDay)
		}, kinds: []string{"created", "cycle"}, want: func(r row, _ stripetest.Subscription) bool { return r.Status == "canceled" && r.Ended != nil }},
		"quantity amends": {before: plain, scene: func(sh *shop, s stripetest.Subscription) {
			sh.update(s.ID, stripetest.UpdateParams{Quantity: 5})
		}, kinds: []string{"created"}, want: onPlan("pro", 5), active: true},
		"an upgrade amends": {before: plain, scene: func(sh *shop, s stripetest.Subscription) {
			sh.pass(5 * aDay)
			sh.update(s.ID, stripetest.UpdateParams{Price: "price_max"})
		}, kinds: []string{"created"}, want: onPlan("max", 1), active: true},
		"a downgrade amends": {before: plain, scene: func(sh *shop, s stripetest.Subscription) {
			sh.update(s.ID, stripetest.UpdateParams{Price: "price_basic"})
		}, kinds: []string{"created"}, want: onPlan("basic", 1), active: true},
		"a scheduled change waits for its period": {before: plain, scene: func(sh *shop, s stripetest.Subscription) {
			_, err := sh.SchedulePrice(s.ID, "price_basic")
			sh.ok(err)
			sh.deliver()
			if got := sh.last(s.ID).Plan; got != "pro" {
				sh.Errorf("on %s before the change is due", got)
			}
			sh.pass(32 * aDay)
		}, kinds: []string{"created", "cycle"}, want: onPlan("basic", 1), active: true},
		"an anchor reset rolls": {before: plain, scene: func(sh *shop, s stripetest.Subscription) {
			sh.pass(5 * aDay)
			sh.update(s.ID, stripetest.UpdateParams{AnchorNow: true})
		}, kinds: []string{"created", "anchor_reset"}, want: status("active", "paid"), active: true},
		"another interval restarts a classic one": {before: plain, scene: func(sh *shop, s stripetest.Subscription) {
			sh.pass(5 * aDay)
			sh.update(s.ID, stripetest.UpdateParams{Price: "price_pro_year"})
		}, kinds: []string{"created", "anchor_reset"}, want: func(r row, s stripetest.Subscription) bool {
			return r.End.Equal(r.Start.AddDate(1, 0, 0)) && r.Start.Equal(s.Items[0].Start)
		}, active: true},
		"another interval amends a flexible one": {before: flexible, scene: func(sh *shop, s stripetest.Subscription) {
			sh.pass(5 * aDay)
			sh.update(s.ID, stripetest.UpdateParams{Price: "price_pro_year", Proration: stripetest.AlwaysInvoice})
		}, kinds: []string{"created"}, want: func(r row, s stripetest.Subscription) bool {
			return r.End.Equal(r.Start.AddDate(1, 0, 0)) && r.Payment == "paid" && s.Items[0].End.Equal(r.End)
		}, active: true},
		"another interval with a reset rolls a flexible one": {before: flexible, scene: func(sh *shop, s stripetest.Subscription) {
			sh.pass(5 * aDay)
			sh.update(s.ID, stripetest.UpdateParams{Price: "price_pro_year", AnchorNow: true})
		}, kinds: []string{"created", "anchor_reset"}, want: status("active", "paid"), active: true},
		"of several items the plan's counts": {before: func(sh *shop) stripetest.Subscription {
			return sh.subscribe(stripetest.SubscribeParams{Items: []stripetest.ItemParams{
				{Price: "price_addon", Quantity: 7}, {Price: "price_basic"}, {Price: "price_max", Quantity: 2},
			}})
		}, kinds: []string{"created"}, want: onPlan("max", 2), active: true},
		"items of several intervals have the period of the plan's": {
			before: func(sh *shop) stripetest.Subscription {
				return sh.subscribe(stripetest.SubscribeParams{BillingMode: stripetest.Flexible, Items: []stripetest.ItemParams{
					{Price: "price_addon"}, {Price: "price_pro_year"},
				}})
			}, scene: func(sh *shop, _ stripetest.Subscription) { sh.pass(70 * aDay) },
			kinds: []string{"created"}, want: func(r row, _ stripetest.Subscription) bool { return r.End.Equal(r.Start.AddDate(1, 0, 0)) }, active: true,
		},
		"an unknown price keeps the plan while the period goes on": {before: plain, scene: func(sh *shop, s stripetest.Subscription) {
			sh.update(s.ID, stripetest.UpdateParams{Price: "price_addon"})
			sh.pass(32 * aDay)
		}, kinds: []string{"created", "cycle"}, want: func(r row, _ stripetest.Subscription) bool { return r.Plan == "pro" && r.Unresolved }, active: true},
		"set to end at the period's end changes nothing": {before: plain, scene: func(sh *shop, s stripetest.Subscription) {
			sh.update(s.ID, stripetest.UpdateParams{CancelAtPeriodEnd: &yes})
		}, kinds: []string{"created"}, want: func(r row, _ stripetest.Subscription) bool {
			return r.Status == "active" && r.CancelAt != nil && r.CancelAt.Equal(r.End)
		}, active: true},
		"set to end at an instant changes nothing": {before: flexible, scene: func(sh *shop, s stripetest.Subscription) {
			at := s.Items[0].Start.AddDate(0, 0, 9)
			sh.update(s.ID, stripetest.UpdateParams{CancelAt: &at})
		}, kinds: []string{"created"}, want: func(r row, s stripetest.Subscription) bool {
			return r.Status == "active" && r.CancelAt != nil && r.CancelAt.Equal(s.CancelAt)
		}, active: true},
		"a scheduled end that is taken back": {before: plain, scene: func(sh *shop, s stripetest.Subscription) {
			sh.update(s.ID, stripetest.UpdateParams{CancelAtPeriodEnd: &yes})
			sh.deliver()
			no := false
			sh.update(s.ID, stripetest.UpdateParams{CancelAtPeriodEnd: &no})
		}, kinds: []string{"created"}, want: func(r row, _ stripetest.Subscription) bool { return r.CancelAt == nil && r.Closed == nil }, active: true},
		"a scheduled end that comes": {before: plain, scene: func(sh *shop, s stripetest.Subscription) {
			sh.update(s.ID, stripetest.UpdateParams{CancelAtPeriodEnd: &yes})
			sh.deliver()
			sh.pass(32 * aDay)
		}, kinds: []string{"created"}, want: func(r row, s stripetest.Subscription) bool {
			return r.Status == "canceled" && r.Ended.Equal(s.EndedAt) && r.Closed.Equal(s.EndedAt)
		}},
		"an immediate end closes now": {before: plain, scene: func(sh *shop, s stripetest.Subscription) {
			sh.pass(5 * aDay)
			_, err := sh.Cancel(s.ID)
			sh.ok(err)
		}, kinds: []string{"created"}, want: func(r row, s stripetest.Subscription) bool {
			return r.Status == "canceled" && r.Closed.Equal(s.EndedAt) && r.End.After(*r.Closed)
		}},
		"pause_collection pauses nothing": {before: plain, scene: func(sh *shop, s stripetest.Subscription) {
			sh.update(s.ID, stripetest.UpdateParams{PauseCollection: &stripetest.PauseCollection{Behavior: "void"}})
			sh.pass(32 * aDay)
		}, kinds: []string{"created", "cycle"}, want: status("active", "none"), active: true},
		"a pending update is not applied": {before: plain, scene: func(sh *shop, s stripetest.Subscription) {
			sh.pay(stripetest.PaymentDeclines)
			_, err := sh.Update(s.ID, stripetest.UpdateParams{Price: "price_max", Proration: stripetest.AlwaysInvoice, PaymentBehavior: stripetest.PendingIfIncomplete})
			sh.ok(err)
		}, kinds: []string{"created"}, want: onPlan("pro", 1), active: true},
		"a pending update is applied when it is paid": {before: plain, scene: func(sh *shop, s stripetest.Subscription) {
			sh.pay(stripetest.PaymentDeclines)
			u, err := sh.Update(s.ID, stripetest.UpdateParams{Price: "price_max", Proration: stripetest.AlwaysInvoice, PaymentBehavior: stripetest.PendingIfIncomplete})
			sh.ok(err)
			sh.deliver()
			sh.pay(stripetest.PaymentSucceeds)
			sh.ok(sh.PayInvoice(u.PendingUpdate.Invoice))
		}, kinds: []string{"created"}, want: onPlan("max", 1), active: true},
		"a customer's deletion closes and keeps history": {before: plain, scene: func(sh *shop, _ stripetest.Subscription) {
			sh.pass(32 * aDay)
			sh.deliver()
			sh.ok(sh.DeleteCustomer(sh.customer))
		}, kinds: []string{"created", "cycle"}, want: func(r row, _ stripetest.Subscription) bool { return r.Status == "canceled" && r.Ended != nil }},
		"a refund changes nothing": {before: plain, scene: func(sh *shop, s stripetest.Subscription) {
			_, err := sh.Refund(s.LatestInvoice, 0)
			sh.ok(err)
		}, kinds: []string{"created"}, want: status("active", "paid"), active: true, version: stripetest.V20240620},
		"an invoice paid elsewhere is paid": {
			before: func(sh *shop) stripetest.Subscription {
				sh.pay(stripetest.PaymentMethodMissing)
				return plain(sh)
			}, scene: func(sh *shop, s stripetest.Subscription) { sh.ok(sh.PayInvoiceOutOfBand(s.LatestInvoice)) },
			kinds: []string{"created"}, want: status("active", "paid"), active: true,
		},
		"a delayed payment is pending until it settles": {
			before: func(sh *shop) stripetest.Subscription {
				s := plain(sh)
				sh.deliver()
				sh.pay(stripetest.PaymentDelayed)
				sh.pass(32 * aDay)
				sh.deliver()
				if r := sh.last(s.ID); r.Payment != "pending" || !r.Active {
					sh.Errorf("before it settles the row is %+v", r)
				}
				return s
			}, scene: func(sh *shop, s stripetest.Subscription) {
				invoices := sh.Invoices(s.ID)
				sh.ok(sh.SettlePayment(invoices[len(invoices)-1].ID, true))
			}, kinds: []string{"created", "cycle"}, want: status("active", "paid"), active: true,
		},
		"a balance pays": {before: plain, scene: func(sh *shop, _ stripetest.Subscription) {
			sh.pay(stripetest.PaymentDeclines)
			sh.ok(sh.Credit(sh.customer, 100_000))
			sh.pass(32 * aDay)
		}, kinds: []string{"created", "cycle"}, want: status("active", "paid"), active: true},
	}
}

func TestTheTableOfStatusesAndRenewals(t *testing.T) {
	t.Parallel()
	for mode, keyless := range map[string]bool{"fetched": false, "folded": true} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s, seed := newSite(t, subscriptions.Policy{}), uint64(0)
			for name, c := range table() {
				seed++
				t.Run(name, func(t *testing.T) {
					version := stripetest.Clover
					if c.version != "" {
						version = c.version
					}
					play(t, s.of(t).open(shopOptions{keyless: keyless, version: version, stripe: stripetest.Options{Seed: seed}}), c)
				})
			}
		})
	}
}

func play(t *testing.T, sh *shop, c lived) {
	t.Helper()
	sub := c.before(sh)
	sh.deliver()
	if c.scene != nil {
		c.scene(sh, sub)
		sh.deliver()
	}
	now, err := sh.Subscription(sub.ID)
	sh.ok(err)
	expectScene(t, sh, c, now)
}

func expectScene(t *testing.T, sh *shop, c lived, now stripetest.Subscription) {
	t.Helper()
	rows := sh.rows(now.ID)
	if len(rows) != len(c.kinds) {
		t.Fatalf("%d rows, want %v: %+v", len(rows), c.kinds, rows)
	}
	for i, kind := range c.kinds {
		if rows[i].Kind != kind {
			t.Errorf("row %d is of kind %s, want %s", i, rows[i].Kind, kind)
		}
	}
	last := rows[len(rows)-1]
	if !c.want(last, now) || last.Active != c.active {
		t.Errorf("the newest row is not as it should be: %+v, subscription %+v", last, now)
	}
	if n := sh.states("parked") + sh.states("dead") + sh.states("unmapped"); n != 0 {
		t.Errorf("%d events are left", n)
	}
}
