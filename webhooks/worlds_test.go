package webhooks_test

import (
	"testing"

	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// Two accounts may have everything by the same ids, events too: nothing of one is taken
// for the other's.
func TestEqualIdsOfOtherAccountsDoNotMeet(t *testing.T) {
	t.Parallel()
	s := newSite(t, subscriptions.Policy{})
	own, connected := s.open(shopOptions{keyless: true, idle: true}), s.open(shopOptions{keyless: true, idle: true, account: "acct_1"})
	connected.workspace = "connected"
	sub := own.subscribe(stripetest.SubscribeParams{Price: "price_basic"})
	if is := connected.subscribe(stripetest.SubscribeParams{Price: "price_max"}); is.ID != sub.ID || is.Customer != sub.Customer {
		t.Fatalf("the ids differ: %s and %s", is.ID, sub.ID)
	}
	own.employ(shopOptions{})
	own.deliver()
	connected.deliver()
	s.ok(connected.DeleteCustomer(sub.Customer))
	connected.deliver()
	got := query[string](t, s.pool, `SELECT string_agg(format('%s:%s:%s:%s', workspace_id, account, plan_key, status), ' ' ORDER BY account) FROM subscriptions`)
	const want = "acme_0::basic:active connected:acct_1:max:canceled"
	if got != want {
		t.Errorf("the rows are\n%s, want\n%s", got, want)
	}
}
