package webhooks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// An event that waited for its price waits no longer than its subscription does, and a
// later catalog leaves none behind that nobody looks up.
func TestEventsThatWaitedForAPriceAreSettledWithTheirSubscription(t *testing.T) {
	t.Parallel()
	for name, resolves := range map[string]func(*shop, string){
		"on another plan": func(sh *shop, id string) { sh.update(id, stripetest.UpdateParams{Price: "price_max"}) },
		"ended": func(sh *shop, id string) {
			_, err := sh.Cancel(id)
			sh.ok(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sh := newSite(t, subscriptions.Policy{}).open(shopOptions{})
			sub := sh.subscribe(stripetest.SubscribeParams{Price: "price_addon"})
			sh.deliver()
			if sh.states("parked") == 0 {
				t.Fatal("nothing waits for the price")
			}
			resolves(sh, sub.ID)
			sh.deliver()
			if n := sh.states("parked"); n != 0 {
				t.Errorf("%d events wait for the price of a subscription that does not", n)
			}
			_, err := sh.store.ApplyCatalog(t.Context(), shopCatalog("price_addon"))
			sh.ok(err)
			sh.considered()
			sh.settle()
		})
	}
}

// considered waits until the worker has held what is unresolved against the catalog: until
// it has looked up a subscription without a plan that is made for this.
func (sh *shop) considered() {
	sh.Helper()
	revision, err := sh.store.CatalogRevision(context.Background())
	sh.ok(err)
	sh.await("the catalog is considered", func() bool { return sh.workers[0].Considered() == revision })
}

// blocked waits until a session of this database waits for a lock.
func (s *site) blocked() bool {
	return query[bool](s, s.pool, `SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE NOT l.granted AND a.datname = current_database())`)
}

// A mapping that is made while a subscription of the customer is looked up is not missed
// by both.
func TestAMappingMadeDuringALookUpIsNotMissed(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{idle: true})
	sub := nameless(sh)
	mapped := make(chan struct{})
	var fault error
	sh.employOn(shopOptions{}, func(w *webhooks.Worker) {
		w.OnceAt("written", func() {
			go func() {
				defer close(mapped)
				_, fault = sh.ledger.Map(t.Context(), webhooks.Mapping{
					WorkspaceID: sh.workspace, CustomerID: sub.Customer, Cause: "a test",
				}, time.Now())
			}()
			sh.await("the customer is mapped or waits", func() bool {
				select {
				case <-mapped:
					return true
				default:
					return sh.blocked()
				}
			})
		})
	})
	for _, e := range sh.Events() {
		if e.Type == "customer.subscription.created" { // another event would make up for it
			sh.endpoint.Send(t.Context(), e)
		}
	}
	<-mapped
	sh.ok(fault)
	sh.settle()
	if r := sh.last(sub.ID); r.Workspace != sh.workspace {
		t.Errorf("the row is %+v", r)
	}
	if n := sh.states("unmapped"); n != 0 {
		t.Errorf("%d events are unmapped", n)
	}
}

// What an old look-up of a subscription without a workspace came to does not replace what
// a later one did.
func TestALookUpThatLandsLateLeavesTheOutcome(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{idle: true})
	sub := nameless(sh)
	for _, e := range sh.Events() {
		sh.endpoint.Send(t.Context(), e)
	}
	w := webhooks.NewWorker(webhooks.WorkerOptions{Ledger: sh.ledger, Store: sh.store, API: sh.api})
	tx, err := sh.pool.Begin(t.Context())
	sh.ok(err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), `UPDATE stripe_sync_requests SET synced_generation = generation, outcome = 'done'`)
	sh.ok(err)
	over := make(chan error, 1)
	go func() {
		over <- w.LookUp(t.Context(), webhooks.SyncKey{SubscriptionID: sub.ID}, 1)
	}()
	sh.await("the old look-up waits", sh.blocked)
	sh.ok(tx.Commit(t.Context()))
	if err := <-over; err != nil && !errors.Is(err, webhooks.ErrOvertaken) {
		t.Errorf("the old look-up: %v", err)
	}
	if is := query[string](t, sh.pool, `SELECT outcome FROM stripe_sync_requests`); is != "done" {
		t.Errorf("the outcome is %s, want done", is)
	}
}

// Stripe answers 400, not 404, where a parameter names an object that is not there.
func TestACustomerThatStripeCannotListIsNoRefusedKey(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{})
	sub := plain(sh)
	sh.deliver()
	sh.ok(sh.DeleteCustomer(sh.customer))
	sh.Break(stripetest.Fault{Path: "/v1/subscriptions", Status: 400, Code: "resource_missing"})
	for _, e := range sh.Events() {
		if e.Type == "customer.deleted" {
			sh.endpoint.Send(t.Context(), e)
		}
	}
	sh.settle()
	sh.wantOutcome("customer.deleted", "done", "")
	if stats := sh.workers[0].Stats(); stats.Held != 0 {
		t.Errorf("stats are %+v", stats)
	}
	if r := sh.last(sub.ID); r.Status != "canceled" {
		t.Errorf("the row is %+v", r)
	}
}

// Without a key a dispute is as its payloads say, in whatever order they come.
func TestAnOldPayloadGivesNoDisputedMoneyBack(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{HoldDisputed: true}).open(shopOptions{keyless: true, version: stripetest.V20240620})
	sub := plain(sh)
	_, err := sh.Refund(sub.LatestInvoice, 1)
	sh.ok(err)
	sh.deliver()
	seen := len(sh.Events())
	dispute, err := sh.OpenDispute(sub.LatestInvoice, true)
	sh.ok(err)
	sh.ok(sh.EscalateDispute(dispute.ID))
	events := sh.EventsFrom(seen)
	for i := range events { // the newest first
		sh.endpoint.Send(t.Context(), events[len(events)-1-i])
		sh.settle()
	}
	if r := sh.last(sub.ID); !r.Disputed || r.Active {
		t.Errorf("the row is %+v", r)
	}
}
