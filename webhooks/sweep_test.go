package webhooks_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headroomhq/headroom/webhooks"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

func TestASweepRecordsWhatWasNeverDelivered(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.work()
	first := o.subscriber("ws_first")
	o.flush()
	o.idle()
	if report := o.sweep(); report.Repairs() != 0 || report.Listed == 0 {
		t.Errorf("a sweep of what was delivered came to %+v", report)
	}
	o.stripe.AdvanceTo(time.Now())
	lost := o.subscriber("ws_lost")
	if _, err := o.stripe.Cancel(first.ID); err != nil {
		t.Fatal(err)
	}
	o.endpoint.Forget()
	report := o.sweep()
	want := map[string]int{"customer.subscription.created": 1, "customer.subscription.updated": 1, "customer.subscription.deleted": 1, "invoice.finalized": 1, "invoice.paid": 1}
	for kind, n := range want {
		if report.Repaired[kind] != n {
			t.Errorf("%s was repaired %d times, want %d: %+v", kind, report.Repaired[kind], n, report)
		}
	}
	o.idle()
	rows := o.rows()
	if !rows[first.ID].Closed || rows[lost.ID].Workspace != "ws_lost" || rows[lost.ID].Closed {
		t.Errorf("rows are %+v", rows)
	}
	if again := o.sweep(); again.Repairs() != 0 || again.Listed < report.Listed {
		t.Errorf("a second sweep came to %+v", again)
	}
	events, err := o.ledger.Events(t.Context(), webhooks.EventFilter{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := o.ledger.Event(t.Context(), events[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := stored[0]; len(got.Deliveries) != 1 || got.Deliveries[0].Origin != "sweep" || got.State != webhooks.StateDone {
		t.Errorf("the newest event is %+v, with deliveries %+v", got.Event, got.Deliveries)
	}
}

func TestASweepLeavesYoungEventsToTheirDelivery(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.stripe.AdvanceTo(time.Now())
	o.subscriber("ws_young")
	sweep := webhooks.NewSweep(webhooks.SweepOptions{Ledger: o.ledger, API: o.api})
	report, err := sweep.Once(t.Context())
	if err != nil || report.Repairs() != 0 || report.Young == 0 || report.Young != report.Listed {
		t.Errorf("the sweep came to %+v, %v", report, err)
	}
	if stats := sweep.Stats(); stats.Repairs != 0 || stats.Failed != 0 {
		t.Errorf("its stats are %+v", stats)
	}
}

func TestASweepGoesOnWhereItWasInterrupted(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.flush()
	o.sweep()
	// Two days in which nothing is delivered.
	past := time.Now()
	o.stripe.AdvanceTo(past)
	o.subscriber("ws_1")
	o.stripe.Advance(24 * time.Hour)
	o.subscriber("ws_2")
	o.stripe.Advance(24 * time.Hour)
	o.subscriber("ws_3")
	later := func() time.Time { return past.Add(48 * time.Hour) }
	sweep := webhooks.NewSweep(webhooks.SweepOptions{Ledger: o.ledger, API: o.api, Young: -1, Now: later})
	interrupted, cancel := context.WithCancel(t.Context())
	listed, handler := 0, o.handler
	o.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if listed++; listed == 7 {
			cancel()
		}
		handler.ServeHTTP(w, r)
	})
	first, err := sweep.Once(interrupted)
	if err == nil || first.Repairs() == 0 {
		t.Fatalf("the first sweep came to %+v, %v", first, err)
	}
	second, err := sweep.Once(t.Context())
	if err != nil || second.Repairs() == 0 || !second.Since.After(first.Since) {
		t.Errorf("the second sweep came to %+v, %v; the first began %s", second, err, first.Since)
	}
	var want int
	for _, e := range o.stripe.Events() {
		if slices.Contains(webhooks.EventTypes(), e.Type) {
			want++
		}
	}
	if got := first.Repairs() + second.Repairs(); got != want {
		t.Errorf("both recorded %d events, want %d", got, want)
	}
}

func TestAGapLongerThanStripeKeepsEventsAsksForAComparison(t *testing.T) {
	t.Parallel()
	then := time.Now().AddDate(0, 0, -40)
	o := newOfficeAt(t, then)
	o.work()
	o.sync()
	early := webhooks.NewSweep(webhooks.SweepOptions{
		Ledger: o.ledger, API: o.api, Young: -1, Now: func() time.Time { return then },
	})
	if report, err := early.Once(t.Context()); err != nil || len(report.Lost) != 0 {
		t.Fatalf("the sweep before the gap came to %+v, %v", report, err)
	}
	o.stripe.Advance(time.Hour)
	forgotten := o.subscriber("ws_forgotten")
	o.stripe.AdvanceTo(time.Now())
	report := o.sweep()
	if len(report.Lost) != 1 || report.Lost[0] != "live mode" {
		t.Fatalf("the sweep came to %+v", report)
	}
	o.stripe.Mute(true)
	unheard := o.subscriber("ws_unheard")
	o.runs(o.syncer().Run)
	o.eventually("the comparison that was asked for", func() bool {
		rows := o.rows()
		return rows[forgotten.ID].Workspace == "ws_forgotten" && rows[unheard.ID].Workspace == "ws_unheard"
	})
	if report := o.sweep(); len(report.Lost) != 0 {
		t.Errorf("the next sweep came to %+v", report)
	}
}

// What Stripe lists of a connected account need not name it.
func TestASweptEventOfAConnectedAccountIsTheAccounts(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.work()
	theirs := o.subscriberOf("ws_theirs", stripetest.CustomerParams{Livemode: true, Account: "acct_theirs"})
	o.flush()
	o.idle()
	handler := o.handler
	o.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		body := bytes.ReplaceAll(answer.Body.Bytes(), []byte(`"account":"acct_theirs",`), nil)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(answer.Code)
		_, _ = w.Write(body)
	})
	if report := o.sweep(); report.Repairs() != 0 {
		t.Errorf("what was delivered was repaired: %+v", report)
	}
	o.stripe.AdvanceTo(time.Now())
	if _, err := o.stripe.Cancel(theirs.ID); err != nil {
		t.Fatal(err)
	}
	o.endpoint.Forget()
	if report := o.sweep(); report.Repaired["customer.subscription.deleted"] != 1 {
		t.Errorf("the sweep came to %+v", report)
	}
	o.idle()
	if !o.rows()[theirs.ID].Closed {
		t.Errorf("the row is %+v", o.rows()[theirs.ID])
	}
}

func TestAKeyOfTheOtherModeIsTold(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	api, err := webhooks.NewAPI(webhooks.APIOptions{Key: "sk_test_other", URL: "http://127.0.0.1:9"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = webhooks.NewSweep(webhooks.SweepOptions{Ledger: o.ledger, API: api}).Once(t.Context())
	if err == nil || !strings.Contains(err.Error(), "HEADROOM_STRIPE_MODE") {
		t.Errorf("the sweep says %v", err)
	}
}

func TestAKeyThatIsRefusedEndsASweep(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	server := httptest.NewServer(o.stripe.Handler())
	t.Cleanup(server.Close)
	api, err := webhooks.NewAPI(webhooks.APIOptions{Key: "sk_live_revoked", URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	_, err = webhooks.NewSweep(webhooks.SweepOptions{Ledger: o.ledger, API: api}).Once(t.Context())
	if err == nil || !strings.Contains(err.Error(), "401") || strings.Contains(err.Error(), "sk_live_revoked") {
		t.Errorf("the sweep says %v", err)
	}
	if errors.Is(err, webhooks.ErrBusy) {
		t.Error("that is not what busy means")
	}
}

func TestTheTypesToSelectAreSortedAndAllMeanSomething(t *testing.T) {
	t.Parallel()
	types := webhooks.EventTypes()
	if !slices.IsSorted(types) || len(slices.Compact(slices.Clone(types))) != len(types) {
		t.Errorf("the types are not sorted, or not each once: %v", types)
	}
	for _, kind := range types {
		e := webhooks.Sniff([]byte(event("evt_1", kind, `{"id":"x_1","subscription":"sub_1","released_subscription":"sub_1"}`)), webhooks.ModeLive)
		if e.State != webhooks.StateReceived {
			t.Errorf("%s: %s %s", kind, e.State, e.Reason)
		}
	}
}
