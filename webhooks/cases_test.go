package webhooks_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// The failures that others have had in public and that the table of statuses and the
// property test do not name, each as it was met.

func TestADisputeIsNotedAndHoldsWhereThePolicySaysSo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy  subscriptions.Policy
		inquiry bool
		won     bool
		// while and after are whether the workspace is on the subscription.
		while, after bool
	}{
		"by default a dispute changes nothing": {while: true, after: true},
		"held, and lost":                       {policy: subscriptions.Policy{HoldDisputed: true}},
		"held, and won":                        {policy: subscriptions.Policy{HoldDisputed: true}, won: true, after: true},
		"an inquiry moves no money":            {policy: subscriptions.Policy{HoldDisputed: true}, inquiry: true, while: true, after: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sh := newSite(t, c.policy).open(shopOptions{})
			sub := plain(sh)
			sh.deliver()
			dispute, err := sh.OpenDispute(sub.LatestInvoice, c.inquiry)
			sh.ok(err)
			sh.deliver()
			if r := sh.last(sub.ID); r.Active != c.while || r.Disputed == c.inquiry {
				t.Errorf("while it is open: %+v", r)
			}
			concerns, err := sh.ledger.Concerns(t.Context(), time.Now())
			if sh.ok(err); (concerns.Disputed == 1) == c.inquiry {
				t.Errorf("while it is open the concerns are %+v", concerns)
			}
			sh.ok(sh.CloseDispute(dispute.ID, c.won))
			sh.deliver()
			r := sh.last(sub.ID)
			if r.Active != c.after {
				t.Errorf("after it: %+v", r)
			}
			if n := query[int](t, sh.pool, `SELECT count(*)::int FROM subscription_changes WHERE field = 'dispute ' || $1`, dispute.ID); n < 2 {
				t.Errorf("the audit trail has %d notes of it", n)
			}
			sh.pass(32 * aDay)
			sh.deliver()
			if r := sh.last(sub.ID); !r.Active || r.Kind != "cycle" {
				t.Errorf("in a period that is paid again: %+v", r)
			}
		})
	}
}

func TestARefundIsNotedOnce(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{})
	sub := plain(sh)
	sh.deliver()
	for _, amount := range []int64{500, 0} {
		_, err := sh.Refund(sub.LatestInvoice, amount)
		sh.ok(err)
		sh.deliver()
	}
	notes := query[string](t, sh.pool, `SELECT string_agg(new_value #>> '{}', ', ' ORDER BY id) FROM subscription_changes WHERE field LIKE 'refund %'`)
	if want := fmt.Sprintf("500 of invoice %s, 2500 of invoice %s", sub.LatestInvoice, sub.LatestInvoice); notes != want {
		t.Errorf("notes are %q, want %q", notes, want)
	}
	sh.wantOutcome("charge.refunded", "done", "")
	sh.wantOutcome("refund.created", "done", "")
}

func TestWithoutAnAPIARefundSinceBasilIsParkedAndTold(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{keyless: true, version: stripetest.Basil})
	sub := plain(sh)
	sh.deliver()
	_, err := sh.Refund(sub.LatestInvoice, 0)
	sh.ok(err)
	sh.deliver()
	sh.wantOutcome("charge.refunded", "parked", "set HEADROOM_STRIPE_API_KEY")
}

func TestAMoneyEventOfNoSubscriptionIsIgnored(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{})
	invoice, err := sh.InvoiceOnce(sh.customer, 700)
	sh.ok(err)
	_, err = sh.Refund(invoice.ID, 0)
	sh.ok(err)
	sh.deliver()
	sh.wantOutcome("invoice.paid", "ignored", "no subscription")
	sh.wantOutcome("charge.refunded", "ignored", "no subscription")
}

func TestAPriceNobodyKnowsIsParkedUntilItIsInTheCatalog(t *testing.T) {
	t.Parallel()
	for name, keyless := range map[string]bool{"fetched": false, "folded": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sh := newSite(t, subscriptions.Policy{}).open(shopOptions{keyless: keyless})
			fresh := sh.subscribe(stripetest.SubscribeParams{Price: "price_addon"})
			known := sh.subscribe(stripetest.SubscribeParams{Price: "price_basic"})
			sh.deliver()
			sh.update(known.ID, stripetest.UpdateParams{Price: "price_addon"})
			sh.deliver()
			sh.wantOutcome("customer.subscription.created", "done", "")
			if n := query[int](t, sh.pool, `SELECT count(*)::int FROM stripe_events WHERE state = 'parked' AND reason LIKE 'plan_unresolved%price_addon%'`); n == 0 {
				t.Error("no event is parked for its price")
			}
			if r := sh.last(known.ID); r.Plan != "basic" || !r.Unresolved || len(sh.rows(fresh.ID)) != 0 {
				t.Errorf("the row is %+v", r)
			}
			_, err := sh.store.ApplyCatalog(t.Context(), shopCatalog("price_addon"))
			sh.ok(err)
			sh.await("the catalog's new price is used", func() bool {
				rows := append(sh.rows(fresh.ID), sh.rows(known.ID)...)
				return len(rows) == 2 && rows[0].Plan == "pro" && rows[1].Plan == "pro" && !rows[1].Unresolved
			})
			sh.settle()
			if n := sh.states("parked"); n != 0 {
				t.Errorf("%d events are still parked", n)
			}
		})
	}
}

func TestAStatusNobodyKnowsKeepsTheLastOneAndIsParked(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{keyless: true})
	sub := plain(sh)
	sh.deliver()
	body := string(sh.Events()[len(sh.Events())-1].Body(stripetest.Clover))
	for _, e := range sh.Events() {
		if e.Type == "customer.subscription.created" {
			body = string(e.Body(stripetest.Clover))
		}
	}
	body = strings.NewReplacer(`"status":"incomplete"`, `"status":"frozen"`, `"customer.subscription.created"`, `"customer.subscription.updated"`,
		fmt.Sprintf(`"created":%d,"data"`, sub.Created.Unix()), fmt.Sprintf(`"created":%d,"data"`, sub.Created.Unix()+60), `"id":"evt_`, `"id":"evt_late_`).Replace(body)
	sh.bring(body)
	sh.settle()
	sh.wantOutcome("customer.subscription.updated", "parked", `status "frozen" is not known`)
	if r := sh.last(sub.ID); r.Status != "active" || !r.Active {
		t.Errorf("the row is %+v", r)
	}
}

func TestAPayloadWithoutAPeriodIsParkedAndNeverEpochZero(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{keyless: true})
	sub := plain(sh)
	sh.deliver()
	sh.bring(strings.ReplaceAll(event("evt_bad", "customer.subscription.paused", fmt.Sprintf(
		`{"id":%q,"object":"subscription","status":"active","created":1795000000,"livemode":false,"items":{"data":[{"id":"si_1","price":{"id":"price_pro"}}]}}`, sub.ID)),
		`"livemode":true`, `"livemode":false`))
	sh.settle()
	sh.wantOutcome("customer.subscription.paused", "parked", "current_period_start")
	if r := sh.last(sub.ID); !r.Active || r.Start.Year() != 2026 {
		t.Errorf("the row is %+v", r)
	}
}

func TestAVersionNobodyKnowsIsReadAndToldOnce(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{keyless: true, version: "2031-01-01.fennel"})
	sub := plain(sh)
	sh.deliver()
	sh.pass(32 * aDay)
	sh.deliver()
	if r := sh.last(sub.ID); r.Kind != "cycle" || r.Payment != "paid" {
		t.Errorf("the row is %+v", r)
	}
	told := 0
	for _, line := range sh.log.lines(t) {
		if line["api_version"] == "2031-01-01.fennel" {
			told++
		}
	}
	if told != 1 {
		t.Errorf("the log tells of the version %d times", told)
	}
}

func TestALivelyWorkspaceIsNotMovedByTheEndOfItsOldSubscription(t *testing.T) {
	t.Parallel()
	for name, keyless := range map[string]bool{"fetched": false, "folded": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sh := newSite(t, subscriptions.Policy{}).open(shopOptions{keyless: keyless})
			yes := true
			old := plain(sh)
			sh.update(old.ID, stripetest.UpdateParams{CancelAtPeriodEnd: &yes})
			sh.deliver()
			sh.pass(20 * aDay)
			fresh := sh.subscribe(stripetest.SubscribeParams{})
			sh.deliver()
			before := sh.last(fresh.ID)
			sh.pass(10 * aDay)
			sh.deliver()
			if r := sh.last(old.ID); r.Status != "canceled" {
				t.Errorf("the old one is %+v", r)
			}
			if r := sh.last(fresh.ID); r.ID != before.ID || !r.Active {
				t.Errorf("the new one was %+v and is %+v", before, r)
			}
		})
	}
}

func TestACheckoutEntitlesNobodyBeforeTheMoneyIsThere(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{})
	sh.pay(stripetest.PaymentDelayed)
	session, err := sh.Checkout(stripetest.CheckoutParams{ClientReferenceID: sh.workspace, Subscribe: stripetest.SubscribeParams{
		Customer: sh.customer, Price: "price_pro",
	}})
	sh.ok(err)
	sh.deliver()
	if r := sh.last(session.Subscription); r.Active || r.Status != "incomplete" {
		t.Errorf("before: %+v", r)
	}
	sh.ok(sh.SettleCheckout(session.ID, true))
	sh.deliver()
	if r := sh.last(session.Subscription); !r.Active || r.Status != "active" {
		t.Errorf("after: %+v", r)
	}
}

func TestARedeliveryAfterAFailureIsNotTakenForADuplicate(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{pause: time.Minute})
	sh.Break(stripetest.Fault{Path: "/v1/subscriptions", Status: 500})
	sub := plain(sh)
	for range 2 {
		sh.endpoint.Send(t.Context(), sh.Events()...)
		sh.await("the look-up failed", func() bool { return sh.workers[0].Stats().Retries > 0 })
	}
	if n := query[int](t, sh.pool, `SELECT count(*)::int FROM stripe_sync_requests WHERE synced_generation < generation`); n != 1 {
		t.Errorf("%d look-ups wait, want the one that failed", n)
	}
	w := sh.employ(shopOptions{})
	_, err := sh.pool.Exec(t.Context(), `UPDATE stripe_sync_requests SET next_attempt_at = now()`)
	sh.ok(err)
	sh.settle()
	if r := sh.last(sub.ID); r.Status != "active" {
		t.Errorf("the row is %+v, the worker %+v", r, w.Stats())
	}
}

func TestAnEntitledWorkspaceIsFoundAsItsMappingSays(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{stripe: stripetest.Options{Start: time.Now().Add(-20 * aDay)}, present: true})
	sub := plain(sh)
	sh.deliver()
	info, err := sh.store.PlanInfo(t.Context(), sh.workspace, time.Now())
	if sh.ok(err); info.Snapshot.PlanKey != "pro" || info.SubscriptionID != sh.last(sub.ID).ID {
		t.Errorf("decisions are measured against %+v", info)
	}
}

func TestAFaultOfHeadroomsOwnIsGivenUpWithItsReason(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{pause: time.Millisecond})
	sub := plain(sh)
	sh.deliver()
	// Nothing of ours does this: a subscription belongs to one workspace.
	_, err := sh.pool.Exec(t.Context(), `UPDATE stripe_mappings SET workspace_id = 'another'`)
	sh.ok(err)
	sh.update(sub.ID, stripetest.UpdateParams{Quantity: 2})
	sh.deliver()
	sh.wantOutcome("customer.subscription.updated", "dead", "it belongs to workspace "+sh.workspace)
	if stats := sh.workers[0].Stats(); stats.Dead != 1 || stats.Retries != 7 {
		t.Errorf("stats are %+v", stats)
	}
	concerns, err := sh.ledger.Concerns(t.Context(), time.Now())
	if sh.ok(err); concerns.Dead != 1 || concerns.DeadSubscriptions != 1 {
		t.Errorf("concerns are %+v", concerns)
	}
	_, err = sh.pool.Exec(t.Context(), `UPDATE stripe_mappings SET workspace_id = $1`, sh.workspace)
	sh.ok(err)
	for _, e := range sh.Events() {
		if e.Type == "customer.subscription.updated" {
			_, err := sh.ledger.Replay(t.Context(), e.ID, time.Now())
			sh.ok(err)
		}
	}
	sh.settle()
	sh.wantOutcome("customer.subscription.updated", "done", "")
	if r := sh.last(sub.ID); r.Quantity != 2 {
		t.Errorf("the row is %+v", r)
	}
}

func TestASubscriptionThatEndedUnmappedWaitsForNobody(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{})
	sub := nameless(sh)
	sh.deliver()
	_, err := sh.Cancel(sub.ID)
	sh.ok(err)
	sh.deliver()
	sh.wantOutcome("customer.subscription.deleted", "ignored", "no workspace was ever known")
	if n := sh.states("unmapped"); n != 0 {
		t.Errorf("%d events are unmapped", n)
	}
}
