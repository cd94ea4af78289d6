package webhooks_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/webhooks"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

func TestAFirstImportBringsEverySubscriptionThatLives(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var want []string
	for i := range 103 {
		want = append(want, o.subscriber(fmt.Sprintf("ws_%d", i)).ID)
	}
	unowned := o.subscriber("")
	gone := o.subscriber("ws_gone")
	if _, err := o.stripe.Cancel(gone.ID); err != nil {
		t.Fatal(err)
	}
	o.work()
	report := o.sync()
	if report.Listed != 105 || report.Imported != 103 || report.Repairs() != 0 || report.Asked != 104 || report.Late != 0 {
		t.Errorf("the import came to %+v", report)
	}
	rows := o.rows()
	for i, id := range want {
		if got := rows[id]; got.Workspace != fmt.Sprintf("ws_%d", i) || got.Plan != "pro" || got.Status != "active" || got.Payment != "paid" {
			t.Errorf("subscription %d has row %+v", i, got)
		}
	}
	if len(rows) != len(want) {
		t.Errorf("%d subscriptions have rows, want %d", len(rows), len(want))
	}
	waiting, err := o.ledger.Waiting(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(waiting) != 1 || waiting[0].SubscriptionID != unowned.ID || waiting[0].CustomerID != unowned.Customer || waiting[0].Outcome != webhooks.StateUnmapped {
		t.Errorf("what waits for a person is %+v", waiting)
	}
	// Once more: nothing is asked, and nothing was repaired.
	before := o.stripe.CallsTo("/v1/subscriptions/")
	if again := o.sync(); again.Asked != 0 || again.Repairs() != 0 || again.Compared != 105 || o.stripe.CallsTo("/v1/subscriptions/") != before {
		t.Errorf("a second comparison came to %+v", again)
	}
}

func TestAComparisonRepairsWhatNoEventTold(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.work()
	for name, change := range map[string]func(stripetest.Subscription) error{
		"renewed": func(s stripetest.Subscription) error { _, err := o.stripe.Renew(s.ID); return err },
		"upgraded": func(s stripetest.Subscription) error {
			_, err := o.stripe.Update(s.ID, stripetest.UpdateParams{Price: o.big.ID})
			return err
		},
		"canceled": func(s stripetest.Subscription) error { _, err := o.stripe.Cancel(s.ID); return err },
		"to_end": func(s stripetest.Subscription) error {
			yes := true
			_, err := o.stripe.Update(s.ID, stripetest.UpdateParams{CancelAtPeriodEnd: &yes})
			return err
		},
	} {
		sub := o.subscriber("ws_" + name)
		o.flush()
		o.idle()
		o.sync()
		o.stripe.Mute(true)
		err := change(sub)
		o.stripe.Mute(false)
		if err != nil {
			t.Fatal(err)
		}
		report := o.sync()
		if report.Repaired[webhooks.RepairChanged] < 1 || report.Repaired[webhooks.RepairMissing] != 0 {
			t.Errorf("%s: the comparison came to %+v", name, report)
		}
		truth, err := o.stripe.Truth(sub.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		last := truth.Periods[len(truth.Periods)-1]
		got := o.rows()[sub.ID]
		plan := map[string]string{"price_pro": "pro", "price_big": "big"}[last.Plan.Price.ID]
		if got.Status != string(last.Status) || !got.Start.Equal(last.Start) || got.Plan != plan || got.Closed != !last.Closed.IsZero() {
			t.Errorf("%s: the row is %+v, the truth %+v", name, got, last)
		}
		if again := o.sync(); again.Repairs() != 0 {
			t.Errorf("%s: a second comparison repaired %v", name, again.Repaired)
		}
	}
}

func TestAComparisonFindsWhatWasNeverHeardOf(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.work()
	o.sync()
	o.stripe.Mute(true)
	o.subscriber("ws_new")
	if report := o.sync(); report.Repaired[webhooks.RepairMissing] != 1 {
		t.Errorf("the comparison came to %+v", report)
	}
}

func TestAPaymentThatNoEventToldIsFound(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.work()
	sub := o.subscriber("ws_late")
	if err := o.stripe.SetPayment(sub.Customer, stripetest.PaymentDeclines); err != nil {
		t.Fatal(err)
	}
	if _, err := o.stripe.Renew(sub.ID); err != nil {
		t.Fatal(err)
	}
	o.flush()
	o.idle()
	o.sync()
	if got := o.rows()[sub.ID]; got.Status != "past_due" || got.Payment != "failed" {
		t.Fatalf("before the payment the row is %+v", got)
	}
	o.stripe.Mute(true)
	invoices := o.stripe.Invoices(sub.ID)
	if err := o.stripe.PayInvoiceOutOfBand(invoices[len(invoices)-1].ID); err != nil {
		t.Fatal(err)
	}
	if report := o.sync(); report.Repaired[webhooks.RepairChanged] != 1 {
		t.Errorf("the comparison came to %+v", report)
	}
	if got := o.rows()[sub.ID]; got.Status != "active" || got.Payment != "paid" {
		t.Errorf("after it the row is %+v", got)
	}
}

func TestWhatNoListHasIsAskedForByName(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.work()
	clock := o.stripe.CreateTestClock(time.Now())
	sub := o.subscriberOf("ws_clock", stripetest.CustomerParams{Livemode: true, TestClock: clock})
	o.flush()
	o.idle()
	o.sync()
	o.stripe.Mute(true)
	if err := o.stripe.AdvanceTestClock(clock, time.Now().AddDate(0, 1, 3)); err != nil {
		t.Fatal(err)
	}
	report := o.sync()
	truth, err := o.stripe.Truth(sub.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, last := o.rows()[sub.ID], truth.Periods[1]; report.Listed != 0 || report.Repaired[webhooks.RepairChanged] != 1 || !got.Start.Equal(last.Start) {
		t.Errorf("the comparison came to %+v, the row is %+v, want the period of %s", report, got, last.Start)
	}
}

func TestConnectedAccountsAreComparedForThemselves(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.work()
	sub := o.subscriberOf("ws_theirs", stripetest.CustomerParams{Livemode: true, Account: "acct_theirs"})
	if report := o.sync(); report.Listed != 0 {
		t.Errorf("an account that nobody named was listed: %+v", report)
	}
	report, err := o.syncer().Once(t.Context(), "acct_theirs")
	if err != nil || report.Imported != 1 {
		t.Fatalf("the import of the account came to %+v, %v", report, err)
	}
	o.stripe.Mute(true)
	if _, err := o.stripe.Cancel(sub.ID); err != nil {
		t.Fatal(err)
	}
	// It is known from now on.
	if report := o.sync(); report.Repaired[webhooks.RepairChanged] != 1 || !o.rows()[sub.ID].Closed {
		t.Errorf("the comparison came to %+v, the row is %+v", report, o.rows()[sub.ID])
	}
}

func TestAComparisonBearsARateLimitAndFaults(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for i := range 30 {
		o.subscriber(fmt.Sprintf("ws_%d", i))
	}
	o.stripe.Break(stripetest.Fault{Path: "/v1/subscriptions", Status: http.StatusTooManyRequests})
	o.stripe.Break(stripetest.Fault{Path: "/v1/subscriptions/", Times: 4, Status: http.StatusTooManyRequests})
	o.stripe.Break(stripetest.Fault{Path: "/v1/invoices", Times: 3, Status: http.StatusInternalServerError})
	o.work()
	if report := o.sync(); report.Imported != 30 || report.Late != 0 {
		t.Errorf("the import came to %+v", report)
	}
	if stats := o.api.Stats(); stats.Limited != 5 || stats.Failed != 3 {
		t.Errorf("the API was %+v", stats)
	}
}

// Interrupted half way and begun anew, an import comes to the same rows.
func TestAnInterruptedImportGoesOn(t *testing.T) {
	t.Parallel()
	const size = 250
	var straight, interrupted map[string]newestRow
	// Each has a database of its own.
	t.Run("straight", func(t *testing.T) {
		o := newOffice(t)
		populate(o, size)
		o.work()
		if report := o.sync(); report.Listed != size || report.Imported != size {
			t.Errorf("the import came to %+v", report)
		}
		straight = o.rows()
	})
	t.Run("interrupted", func(t *testing.T) {
		o := newOffice(t)
		if report := importInterrupted(o, size); report.Listed >= size || report.Listed == 0 {
			t.Errorf("the second half came to %+v", report)
		}
		interrupted = o.rows()
	})
	if diff := cmp.Diff(byWorkspace(straight), byWorkspace(interrupted)); diff != "" || len(straight) != size {
		t.Errorf("%d rows differ (-straight +interrupted):\n%s", len(straight), diff)
	}
}

func populate(o *office, size int) {
	for i := range size {
		o.subscriber(fmt.Sprintf("ws_%d", i))
	}
}

// importInterrupted imports half, is stopped together with its worker, and imports the
// rest.
func importInterrupted(o *office, size int) webhooks.SyncReport {
	o.Helper()
	populate(o, size)
	stop := o.work()
	ctx, cancel := context.WithCancel(o.Context())
	syncer := webhooks.NewSync(webhooks.SyncOptions{
		Ledger: o.ledger, Store: o.store, API: o.api, Rate: -1,
		Progress: func(p webhooks.SyncProgress) {
			if p.Listed >= size/2 {
				cancel()
			}
		},
	})
	if _, err := syncer.Once(ctx); err == nil {
		o.Fatal("the import was not interrupted")
	}
	stop()
	if n := len(o.rows()); n == 0 || n >= size {
		o.Fatalf("%d rows of %d after the interruption", n, size)
	}
	o.work()
	report := o.sync()
	o.idle()
	return report
}

// byWorkspace is rows by workspace without what two fakes differ in.
func byWorkspace(rows map[string]newestRow) map[string]newestRow {
	out := make(map[string]newestRow, len(rows))
	for _, r := range rows {
		ws := r.Workspace
		out[ws] = newestRow{Workspace: ws, Plan: r.Plan, Status: r.Status, Payment: r.Payment, Closed: r.Closed}
	}
	return out
}

func TestOfSeveralProcessesOneCompares(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.work()
	o.subscriber("ws_1")
	inside, hold := make(chan struct{}), make(chan struct{})
	first := webhooks.NewSync(webhooks.SyncOptions{
		Ledger: o.ledger, Store: o.store, API: o.api, Rate: -1,
		Progress: func(webhooks.SyncProgress) {
			select {
			case <-inside:
			default:
				close(inside)
			}
			<-hold
		},
	})
	through := make(chan struct{})
	o.runs(func(ctx context.Context) error {
		defer close(through)
		_, err := first.Once(ctx)
		return err
	})
	<-inside
	if _, err := o.syncer().Once(t.Context()); !errors.Is(err, webhooks.ErrBusy) {
		t.Errorf("a second comparison at once: %v, want ErrBusy", err)
	}
	close(hold)
	<-through
	if n := len(o.rows()); n != 1 {
		t.Errorf("%d rows after the first, want 1", n)
	}
}
