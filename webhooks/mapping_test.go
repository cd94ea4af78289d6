package webhooks_test

import (
	"errors"
	"testing"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// nameless subscribes without saying whose it is.
func nameless(sh *shop) stripetest.Subscription {
	return sh.subscribe(stripetest.SubscribeParams{Metadata: map[string]string{}})
}

func TestAnEventBeforeItsMappingWaitsForIt(t *testing.T) {
	t.Parallel()
	s, seed := newSite(t, subscriptions.Policy{}), uint64(0)
	for name, maps := range map[string]func(*shop, stripetest.Subscription){
		"the customer, by hand": func(sh *shop, s stripetest.Subscription) {
			n, err := sh.ledger.Map(t.Context(), webhooks.Mapping{WorkspaceID: sh.workspace, CustomerID: s.Customer, Cause: "a test"}, time.Now())
			if sh.ok(err); n != 1 {
				sh.Errorf("%d look-ups were asked for, want 1", n)
			}
		},
		"the subscription, by hand": func(sh *shop, s stripetest.Subscription) {
			_, err := sh.ledger.Map(t.Context(), webhooks.Mapping{WorkspaceID: sh.workspace, SubscriptionID: s.ID, Cause: "a test"}, time.Now())
			sh.ok(err)
		},
		"metadata that are set later": func(sh *shop, s stripetest.Subscription) {
			sh.update(s.ID, stripetest.UpdateParams{Metadata: map[string]string{"workspace_id": sh.workspace}})
			sh.deliver()
		},
		"a checkout of the same customer": func(sh *shop, s stripetest.Subscription) {
			_, err := sh.Checkout(stripetest.CheckoutParams{ClientReferenceID: sh.workspace, Subscribe: stripetest.SubscribeParams{
				Customer: s.Customer, Price: "price_basic",
			}})
			sh.ok(err)
			sh.deliver()
		},
	} {
		for mode, keyless := range map[string]bool{"fetched": false, "folded": true} {
			seed++
			t.Run(name+"/"+mode, func(t *testing.T) {
				sh := s.of(t).open(shopOptions{keyless: keyless, stripe: stripetest.Options{Seed: seed}})
				sub := nameless(sh)
				sh.deliver()
				sh.wantOutcome("customer.subscription.created", "unmapped", "no workspace is known")
				if rows := sh.rows(sub.ID); len(rows) != 0 {
					t.Fatalf("rows of nobody: %+v", rows)
				}
				maps(sh, sub)
				sh.settle()
				sh.wantOutcome("customer.subscription.created", "done", "")
				if r := sh.last(sub.ID); r.Workspace != sh.workspace || r.Status != "active" {
					t.Errorf("the row is %+v", r)
				}
			})
		}
	}
}

func TestACheckoutMapsThoughItsOwnEventIsLost(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{})
	session, err := sh.Checkout(stripetest.CheckoutParams{Metadata: map[string]string{"workspace_id": sh.workspace}, Subscribe: stripetest.SubscribeParams{
		Customer: sh.customer, Price: "price_pro",
	}})
	sh.ok(err)
	for _, e := range sh.Events() {
		if e.Object != "checkout.session" {
			sh.endpoint.Send(t.Context(), e)
		}
	}
	sh.settle()
	if r := sh.last(session.Subscription); r.Workspace != sh.workspace {
		t.Errorf("the row is %+v", r)
	}
}

func TestACustomerMayPayForSeveralWorkspaces(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{})
	for _, workspace := range []string{"one", "two"} {
		session, err := sh.Checkout(stripetest.CheckoutParams{ClientReferenceID: workspace, Subscribe: stripetest.SubscribeParams{
			Customer: sh.customer, Price: "price_pro",
		}})
		sh.ok(err)
		sh.deliver()
		if r := sh.last(session.Subscription); r.Workspace != workspace || !r.Active {
			t.Errorf("the row of %s is %+v", workspace, r)
		}
	}
	three := sh.subscribe(stripetest.SubscribeParams{Metadata: map[string]string{"workspace_id": "three"}})
	sh.deliver()
	if r := sh.last(three.ID); r.Workspace != "three" {
		t.Errorf("the row of three is %+v", r)
	}
}

func TestMetadataNeverMoveASubscription(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{})
	sub := plain(sh)
	sh.deliver()
	sh.update(sub.ID, stripetest.UpdateParams{Quantity: 9, Metadata: map[string]string{"workspace_id": "victim"}})
	sh.deliver()
	if r := sh.last(sub.ID); r.Workspace != sh.workspace || r.Quantity != 9 {
		t.Errorf("the row is %+v", r)
	}
	if n := query[int](t, sh.pool, `SELECT count(*)::int FROM workspaces WHERE id = 'victim'`); n != 0 {
		t.Error("the workspace that was named exists")
	}
	_, err := sh.ledger.Map(t.Context(), webhooks.Mapping{WorkspaceID: "victim", SubscriptionID: sub.ID}, time.Now())
	if !errors.Is(err, webhooks.ErrMapped) {
		t.Errorf("mapped by hand to another workspace: %v", err)
	}
}

func TestAWorkspaceThatIsNoneLeavesTheSubscriptionUnmapped(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{})
	sub := sh.subscribe(stripetest.SubscribeParams{Metadata: map[string]string{"workspace_id": "no such id!"}})
	sh.deliver()
	sh.wantOutcome("customer.subscription.created", "unmapped", `"no such id!"`)
	if len(sh.rows(sub.ID)) != 0 {
		t.Error("it has rows")
	}
}

func TestMappingsThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, subscriptions.Policy{})
	for _, m := range []webhooks.Mapping{
		{WorkspaceID: "acme"}, {WorkspaceID: "no id!", CustomerID: "cus_1"}, {WorkspaceID: "acme", CustomerID: "cus 1"},
	} {
		if _, err := s.ledger.Map(t.Context(), m, time.Now()); !errors.Is(err, webhooks.ErrInvalidMapping) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

func TestADeletedCustomerIsNoLongerMapped(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{})
	_, err := sh.ledger.Map(t.Context(), webhooks.Mapping{WorkspaceID: sh.workspace, CustomerID: sh.customer, Cause: "a test"}, time.Now())
	sh.ok(err)
	sub := nameless(sh)
	sh.deliver()
	sh.ok(sh.DeleteCustomer(sh.customer))
	sh.deliver()
	if r := sh.last(sub.ID); r.Status != "canceled" || r.Workspace != sh.workspace {
		t.Errorf("the row is %+v", r)
	}
	kinds := query[string](t, sh.pool, `SELECT string_agg(kind, ',') FROM stripe_mappings`)
	if kinds != "subscription" {
		t.Errorf("mapped are %s, want the subscription alone", kinds)
	}
	sh.wantOutcome("customer.deleted", "done", "")
}
