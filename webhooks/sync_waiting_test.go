package webhooks_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

func TestConcernsAreCountedAndGoAway(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	now := func() time.Time { return time.Now().UTC() }
	concerns := func() webhooks.Concerns {
		t.Helper()
		c, err := o.ledger.Concerns(t.Context(), now())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if diff := cmp.Diff(webhooks.Concerns{}, concerns()); diff != "" {
		t.Fatalf("of nothing (-want +got):\n%s", diff)
	}
	unowned := o.subscriber("")
	o.subscriber("ws_twice")
	o.subscriber("ws_twice")
	if c := concerns(); c.Backlog != 0 {
		t.Errorf("before the deliveries: %+v", c)
	}
	o.flush()
	if c := concerns(); c.Backlog != 3 || c.Received == 0 || c.OldestBacklog <= 0 {
		t.Errorf("before the look-ups: %+v", c)
	}
	o.work()
	o.idle()
	c := concerns()
	if c.Backlog != 0 || c.Received != 0 || c.Unmapped == 0 || c.OldestUnmapped <= 0 || c.UnmappedSubscriptions != 1 || c.Several != 1 {
		t.Errorf("after them: %+v", c)
	}
	// The price leaves the catalog: who is on it stays on the plan, and is looked up with
	// the next event.
	o.applyCatalog("price_other", "price_big")
	sub, err := o.stripe.Update(o.stripe.Subscriptions()[1].ID, stripetest.UpdateParams{Quantity: 2})
	if err != nil {
		t.Fatal(err)
	}
	o.flush()
	o.idle()
	if c := concerns(); c.Unresolved != 1 {
		t.Errorf("without the price: %+v", c)
	}
	o.applyCatalog("price_pro", "price_big")
	if _, err := o.ledger.Map(t.Context(), webhooks.Mapping{
		WorkspaceID: "ws_found", Livemode: true, CustomerID: unowned.Customer, Cause: "test",
	}, now()); err != nil {
		t.Fatal(err)
	}
	if _, err := o.stripe.Cancel(sub.ID); err != nil {
		t.Fatal(err)
	}
	o.flush()
	o.eventually("all is as it should be", func() bool { return concerns() == webhooks.Concerns{} })
}

// At a scrape of the metrics no row of a subscription is read to count who may pay twice:
// there may be a hundred thousand of them.
func TestWhoMayPayTwiceIsCountedFromAnIndex(t *testing.T) {
	t.Parallel()
	s := newSite(t, subscriptions.Policy{})
	tx, err := s.pool.Begin(t.Context())
	s.ok(err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	// An empty table is read as it is unless it costs more than it does.
	_, err = tx.Exec(t.Context(), `SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off`)
	s.ok(err)
	rows, err := tx.Query(t.Context(), `EXPLAIN `+webhooks.SeveralSQL)
	s.ok(err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	s.ok(err)
	if text := strings.Join(plan, "\n"); !strings.Contains(text, "subscriptions_live_of_stripe") {
		t.Errorf("the plan is\n%s", text)
	}
}
