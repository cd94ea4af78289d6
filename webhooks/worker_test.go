package webhooks_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// outcome is the state of the newest event of a type, and its reason.
func (s *site) outcome(kind string) (state, reason string) {
	s.Helper()
	err := s.pool.QueryRow(context.Background(), `SELECT state, reason FROM stripe_events WHERE type = $1 ORDER BY id DESC LIMIT 1`, kind).Scan(&state, &reason)
	s.ok(err)
	return state, reason
}

func (s *site) wantOutcome(kind, state, reason string) {
	s.Helper()
	gotState, gotReason := s.outcome(kind)
	if gotState != state || !strings.Contains(gotReason, reason) {
		s.Errorf("%s is %s: %q, want %s: %q", kind, gotState, gotReason, state, reason)
	}
}

// bring delivers a body as it is.
func (sh *shop) bring(body string) {
	sh.Helper()
	request := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/webhooks/stripe", strings.NewReader(body))
	request.Header.Set("Stripe-Signature", stripetest.Sign([]byte(body), time.Now(), newSecret))
	answer := httptest.NewRecorder()
	sh.door.ServeHTTP(answer, request)
	if answer.Code != http.StatusOK {
		sh.Fatalf("answered %d %s", answer.Code, answer.Body)
	}
}

func TestABusyAPIGivesNothingUp(t *testing.T) {
	t.Parallel()
	s, seed := newSite(t, subscriptions.Policy{}), uint64(0)
	for name, fault := range map[string]stripetest.Fault{
		"a plain rate limit": {Status: 429, Times: 3},
		"a lock at Stripe":   {Status: 429, Code: "lock_timeout", Times: 3},
		"a conflict":         {Status: 409, Times: 2},
		"a fault of Stripe":  {Status: 500, Times: 4},
		"half an answer":     {Cut: true, Times: 3},
		"no right":           {Status: 403, Times: 2},
		"no such key":        {Status: 401, Times: 1},
	} {
		seed++
		t.Run(name, func(t *testing.T) {
			sh := s.of(t).open(shopOptions{pause: time.Millisecond, stripe: stripetest.Options{Seed: seed}})
			fault.Path = "/v1/"
			sh.Break(fault)
			sub := plain(sh)
			sh.deliver()
			if r := sh.last(sub.ID); !r.Active || r.Status != "active" {
				t.Errorf("the row is %+v", r)
			}
			stats := sh.workers[0].Stats()
			if stats.Retries != int64(fault.Times) || (stats.API.Limited > 0) != (fault.Status == 429) || (stats.Held > 0) != (fault.Status == 401 || fault.Status == 403) {
				t.Errorf("stats are %+v", stats)
			}
		})
	}
}

func TestAnAnswerThatNeverComesIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	defer close(hold)
	fake := stripetest.New(stripetest.Options{})
	server := httptest.NewServer(fake.Handler())
	defer server.Close()
	fake.Break(stripetest.Fault{Hold: hold, Times: -1})
	api, err := webhooks.NewAPI(webhooks.APIOptions{Key: fake.Key(false), URL: server.URL, Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	s := newSite(t, subscriptions.Policy{})
	w := webhooks.NewWorker(webhooks.WorkerOptions{Ledger: s.ledger, Store: s.store, API: api})
	if err := w.LookUp(t.Context(), webhooks.SyncKey{SubscriptionID: "sub_1"}, 1); err == nil {
		t.Error("an answer came")
	}
	if n := api.Stats(); n.Calls != 1 || n.Failed != 1 {
		t.Errorf("stats are %+v", n)
	}
}

func TestKeysAndURLsThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	for _, o := range []webhooks.APIOptions{{}, {Key: " sk_live_1"}, {Key: "sk_live_1\n"}, {Key: "sk_live_1", URL: "nowhere"}} {
		if _, err := webhooks.NewAPI(o); err == nil || !strings.Contains(err.Error(), "HEADROOM_STRIPE_API_") || strings.Contains(err.Error(), "sk_live") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestWhatStripeDoesNotKnowIsParked(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{})
	sh.bring(strings.ReplaceAll(event("evt_1", "customer.subscription.updated", `{"id":"sub_of_another_account","object":"subscription"}`), `"livemode":true`, `"livemode":false`))
	sh.bring(strings.ReplaceAll(event("evt_2", "charge.refunded", `{"id":"ch_of_another_account","object":"charge"}`), `"livemode":true`, `"livemode":false`))
	sh.settle()
	sh.wantOutcome("customer.subscription.updated", "parked", "the API key may be of another account or mode")
	sh.wantOutcome("charge.refunded", "parked", "the API key may be of another account or mode")
	if stats := sh.workers[0].Stats(); stats.Parked != 2 {
		t.Errorf("stats are %+v", stats)
	}
}

func TestObjectsOfAnotherModeThanTheKeysAreFolded(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{live: false})
	live := sh.CreateCustomer(stripetest.CustomerParams{Livemode: true, TestClock: sh.clock}).ID
	sub := sh.subscribe(stripetest.SubscribeParams{Customer: live})
	sh.deliver()
	if r := sh.last(sub.ID); r.Status != "active" || sh.CallsTo("/v1/subscriptions") != 0 {
		t.Errorf("the row is %+v after %d calls with a key of the other mode", r, sh.CallsTo("/v1/subscriptions"))
	}
}

func TestAnAccountIsPartOfEveryKeyAndEveryFetch(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{account: "acct_shop"})
	sub := plain(sh)
	sh.deliver()
	calls := sh.Calls()
	if len(calls) == 0 {
		t.Fatal("nothing was asked")
	}
	for _, c := range calls {
		if c.Account != "acct_shop" || c.Version != "2026-09-30.endive" {
			t.Errorf("%s was asked for account %q at version %q", c.Path, c.Account, c.Version)
		}
	}
	if got := query[string](t, sh.pool, `SELECT account FROM subscriptions WHERE source_id = $1`, sub.ID); got != "acct_shop" {
		t.Errorf("the row is of account %q", got)
	}
}

func TestManyEventsOfOneSubscriptionCostFewCalls(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{workers: 2})
	hold := make(chan struct{})
	sh.Break(stripetest.Fault{Path: "/v1/subscriptions/", Hold: hold})
	sub := plain(sh)
	for i := range 50 {
		sh.update(sub.ID, stripetest.UpdateParams{Quantity: int64(i + 2)})
	}
	for _, d := range sh.endpoint.Flush(t.Context()) {
		if !d.OK() {
			t.Fatalf("%+v", d)
		}
	}
	sh.await("the API is asked", func() bool { return sh.CallsTo("/v1/subscriptions/") > 0 })
	close(hold)
	sh.settle()
	if r := sh.last(sub.ID); r.Quantity != 51 {
		t.Errorf("quantity %d, want 51", r.Quantity)
	}
	if n := sh.CallsTo("/v1/subscriptions/"); n > 3 {
		t.Errorf("%d calls for %d events", n, sh.states("done"))
	}
}

func TestALookUpThatBeganEarlierNeverLandsLate(t *testing.T) {
	t.Parallel()
	s := newSite(t, subscriptions.Policy{})
	sh := s.open(shopOptions{})
	sub := plain(sh)
	sh.deliver()
	key := webhooks.SyncKey{SubscriptionID: sub.ID}
	idle := webhooks.NewWorker(webhooks.WorkerOptions{Ledger: s.ledger, Store: s.store, API: sh.api})
	hold, begun := make(chan struct{}), sh.CallsTo("/v1/subscriptions/")
	generation := query[int64](t, s.pool, `SELECT generation FROM stripe_sync_requests`)
	sh.Break(stripetest.Fault{Path: "/v1/subscriptions/", Hold: hold})
	late := make(chan error, 1)
	go func() { late <- idle.LookUp(context.WithoutCancel(t.Context()), key, generation) }()
	s.await("the early look-up has its answer", func() bool { return sh.CallsTo("/v1/subscriptions/") > begun })
	sh.update(sub.ID, stripetest.UpdateParams{Price: "price_max"})
	sh.deliver()
	close(hold)
	if err := <-late; !errors.Is(err, webhooks.ErrOvertaken) {
		t.Errorf("the early look-up came to %v", err)
	}
	if r := s.last(sub.ID); r.Plan != "max" {
		t.Errorf("the plan is %s", r.Plan)
	}
}

func TestReplayWritesWhatIsTrueNow(t *testing.T) {
	t.Parallel()
	for name, keyless := range map[string]bool{"fetched": false, "folded": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sh := newSite(t, subscriptions.Policy{}).open(shopOptions{keyless: keyless})
			sub := plain(sh)
			sh.deliver()
			sh.pass(5 * aDay)
			_, err := sh.Cancel(sub.ID)
			sh.ok(err)
			sh.deliver()
			before := sh.rows(sub.ID)
			for _, e := range sh.Events() {
				if e.Object == "subscription" {
					_, err := sh.ledger.Replay(t.Context(), e.ID, time.Now())
					sh.ok(err)
				}
			}
			sh.settle()
			if after := sh.rows(sub.ID); len(after) != 1 || len(before) != 1 || after[0].Status != "canceled" {
				t.Errorf("a replay of old events made %+v of %+v", after, before)
			}
		})
	}
}

// How long to wait is Stripe's to say: no jitter makes it less.
func TestStripeIsNotAskedAgainBeforeItSays(t *testing.T) {
	t.Parallel()
	fake := stripetest.New(stripetest.Options{})
	var refused, again atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refused.CompareAndSwap(0, time.Now().UnixNano()) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error":{"type":"invalid_request_error","code":"rate_limit","message":"slow down"}}`)
			return
		}
		again.CompareAndSwap(0, time.Now().UnixNano())
		fake.Handler().ServeHTTP(w, r)
	}))
	defer server.Close()
	s := newSite(t, subscriptions.Policy{})
	api, err := webhooks.NewAPI(webhooks.APIOptions{Key: fake.Key(false), URL: server.URL})
	s.ok(err)
	defer api.Close()
	sh := &shop{site: s, Stripe: fake, api: api}
	sh.employ(shopOptions{pause: time.Millisecond})
	_, err = s.ledger.Ask(t.Context(), webhooks.SyncKey{SubscriptionID: "sub_none"}, "test", time.Now())
	s.ok(err)
	s.settle()
	if waited := time.Duration(again.Load() - refused.Load()); waited < time.Second {
		t.Errorf("Stripe was asked again after %s, want a second", waited)
	}
}
