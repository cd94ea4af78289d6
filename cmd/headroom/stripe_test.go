package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/webhooks"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// stripeSecret signs what the fake Stripe of these tests sends.
const stripeSecret = "whsec_of_the_tests"

// account is a fake Stripe, and an installation that follows it.
type account struct {
	*installation
	stripe *stripetest.Stripe
}

func newAccount(t *testing.T) *account {
	t.Helper()
	stripe := stripetest.New(stripetest.Options{Start: time.Now().Add(-time.Minute)})
	for _, id := range []string{"price_pro_monthly", "price_enterprise_monthly", "price_trial_monthly"} {
		stripe.CreatePrice(stripetest.PriceParams{ID: id, Amount: 2500})
	}
	server := httptest.NewServer(stripe.Handler())
	t.Cleanup(server.Close)
	i := newInstallation(t).with(map[string]string{
		"HEADROOM_STRIPE_WEBHOOK_SECRETS": "whsec_old," + stripeSecret, "HEADROOM_STRIPE_API_KEY": stripe.Key(true),
		"HEADROOM_STRIPE_API_URL": server.URL,
	})
	i.must("plans", "apply", demoCatalog)
	return &account{installation: i, stripe: stripe}
}

func (a *account) subscriber(workspace string) stripetest.Subscription {
	a.t.Helper()
	return a.subscriberOn("", workspace)
}

// subscriberOn lives by a test clock, whose time may be moved as far as one likes.
func (a *account) subscriberOn(clock, workspace string) stripetest.Subscription {
	a.t.Helper()
	params := stripetest.SubscribeParams{
		Customer: a.stripe.CreateCustomer(stripetest.CustomerParams{Livemode: true, TestClock: clock}).ID, Price: "price_pro_monthly",
	}
	if workspace != "" {
		params.Metadata = map[string]string{"workspace_id": workspace}
	}
	sub, err := a.stripe.Subscribe(params)
	if err != nil {
		a.t.Fatal(err)
	}
	return sub
}

// sends is an endpoint at the serving process.
func (a *account) sends(s *serving) *stripetest.Endpoint {
	return a.stripe.NewEndpoint(stripetest.EndpointOptions{
		URL: "http://" + s.addr + "/webhooks/stripe", Secrets: []string{stripeSecret},
		Client: &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}},
	})
}

func (a *account) flush(e *stripetest.Endpoint) {
	a.t.Helper()
	for _, d := range e.Flush(a.t.Context()) {
		if !d.OK() {
			a.t.Fatalf("%s was answered %d %s, %v", d.Event.Type, d.Status, d.Answer, d.Err)
		}
	}
}

func TestServeFollowsStripe(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	s := a.serve()
	s.awaitStatus(http.StatusOK)
	endpoint := a.sends(s)
	sub := a.subscriberOn(a.stripe.CreateTestClock(time.Now()), "ws_paying")
	a.flush(endpoint)
	first := awaitPlan(t, a.installation, "ws_paying", func(d schemas.DecisionMade) bool { return d.PlanKey == "pro" })
	if _, err := a.stripe.Renew(sub.ID); err != nil {
		t.Fatal(err)
	}
	a.flush(endpoint)
	second := awaitPlan(t, a.installation, "ws_paying", func(d schemas.DecisionMade) bool {
		return d.SubscriptionID != nil && *d.SubscriptionID != *first.SubscriptionID
	})
	if !second.PeriodEnd.After(first.PeriodEnd) || second.Used != 1 {
		t.Errorf("after the renewal the decision is %+v", second)
	}

	families := s.scrape()
	for name, want := range map[string]float64{
		"headroom_stripe_repairs_total": 0, "headroom_stripe_lookups_given_up_total": 0, "headroom_stripe_key_refused_total": 0,
		"headroom_stripe_plan_unresolved": 0, "headroom_stripe_workspaces_several_subscriptions": 0,
		"headroom_stripe_subscriptions_overdue": 0, "headroom_stripe_subscriptions_waiting": 0, "headroom_stripe_repair_failures_total": 0,
		"headroom_stripe_deliveries_total": float64(len(a.stripe.Events())),
	} {
		if family := families[name]; family == nil || sum(family) != want {
			t.Errorf("%s is %v, want %v", name, family, want)
		}
	}
	for _, name := range []string{
		"headroom_stripe_events", "headroom_stripe_events_oldest_seconds", "headroom_stripe_lookups_waiting",
		"headroom_stripe_lookups_oldest_seconds", "headroom_stripe_lookups_total", "headroom_stripe_lookup_retries_total", "headroom_stripe_api_calls_total",
	} {
		if families[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	if _, body := s.readiness(); !body.Checks["stripe"].OK {
		t.Errorf("/readyz says of stripe %+v", body.Checks["stripe"])
	}
	if err := s.end(); err != nil {
		t.Errorf("serve ended with %v", err)
	}
}

func TestWithoutASecretNoEventIsReceived(t *testing.T) {
	t.Parallel()
	answer := httptest.NewRecorder()
	newStripeDoor(Config{}).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/webhooks/stripe", strings.NewReader("{}")))
	if answer.Code != http.StatusNotFound || !strings.Contains(answer.Body.String(), "HEADROOM_STRIPE_WEBHOOK_SECRETS") ||
		answer.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("answered %d %s", answer.Code, answer.Body)
	}
}

func TestADoorThatIsNotOpenAsksToSendAgain(t *testing.T) {
	t.Parallel()
	door := newStripeDoor(Config{StripeWebhookSecrets: NewSecret(stripeSecret)})
	post := func() int {
		answer := httptest.NewRecorder()
		door.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/webhooks/stripe", strings.NewReader("{}")))
		return answer.Code
	}
	inside, hold, left := make(chan struct{}), make(chan struct{}), make(chan int)
	before := post()
	var occupied atomic.Bool
	door.open(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if occupied.CompareAndSwap(false, true) {
			close(inside)
			<-hold
		}
		w.WriteHeader(http.StatusOK)
	}))
	go func() { left <- post() }()
	<-inside
	closed := make(chan struct{})
	go func() { door.close(); close(closed) }()
	after := post()
	for after == http.StatusOK {
		after = post()
	}
	select {
	case <-closed:
		t.Error("closed before those inside had left")
	default:
	}
	close(hold)
	if code := <-left; code != http.StatusOK || before != http.StatusServiceUnavailable || after != http.StatusServiceUnavailable {
		t.Errorf("answered %d before, %d to the one inside, %d after", before, code, after)
	}
	<-closed
}

func TestAnOperatorImportsMapsReplaysAndSees(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	unowned := a.subscriber("")
	a.subscriber("ws_known")
	var imported syncView
	a.mustJSON(&imported, "stripe", "sync", "--rate", "1000")
	if imported.Listed != 2 || imported.Imported != 1 || len(imported.Waiting) != 1 || imported.Waiting[0].SubscriptionID != unowned.ID {
		t.Fatalf("the import came to %+v", imported)
	}
	if text := a.must("stripe", "waiting"); !strings.Contains(text, unowned.Customer) {
		t.Errorf("waiting says:\n%s", text)
	}
	if text := a.must("stripe", "map", "ws_found", unowned.Customer); !strings.Contains(text, "1 look-up asked for") {
		t.Errorf("map says %s", text)
	}
	// The look-up that was asked for may be over before the comparison comes to it.
	if text := a.must("stripe", "sync", "--rate", "1000"); !hasLine(text, "subscriptions", "listed", "2") {
		t.Errorf("the second comparison says:\n%s", text)
	}
	if text := a.must("workspaces", "show", "ws_found"); !strings.Contains(text, "pro") {
		t.Errorf("the workspace is:\n%s", text)
	}
	// Nothing was delivered: a sweep finds it. What was made this minute is left alone.
	var swept webhooks.SweepReport
	a.mustJSON(&swept, "stripe", "sweep")
	if swept.Listed == 0 || swept.Young+swept.Repairs() != swept.Listed {
		t.Errorf("the sweep came to %+v", swept)
	}
	s := a.serve()
	s.awaitStatus(http.StatusOK)
	endpoint := a.sends(s)
	a.flush(endpoint)
	var events []webhooks.Event
	a.mustJSON(&events, "stripe", "events", "--all")
	if len(events) != len(a.stripe.Events()) || events[0].ReceivedAt.Before(events[len(events)-1].ReceivedAt) {
		t.Errorf("%d events, want %d, newest first", len(events), len(a.stripe.Events()))
	}
	var some []webhooks.Event
	a.mustJSON(&some, "stripe", "events", "--state", "ignored", "--limit", "2")
	if len(some) != 2 || some[0].State != "ignored" {
		t.Errorf("two ignored ones are %+v", some)
	}
	if text := a.must("stripe", "events", "--limit", "1"); !hasLine(text, "EVENT", "TYPE", "CREATED", "STATE", "WORKSPACE", "ABOUT", "TIMES", "REASON") {
		t.Errorf("the listing is:\n%s", text)
	}
	created := slices.IndexFunc(events, func(e webhooks.Event) bool { return e.Type == "customer.subscription.created" })
	if text := a.must("stripe", "replay", events[created].ID); text != events[created].ID+"  received\n" {
		t.Errorf("replay says %q", text)
	}
}

func TestWhatAStripeCommandCannotDoItSays(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	keyless := a.with(map[string]string{"HEADROOM_STRIPE_API_KEY": ""})
	refused := a.with(map[string]string{"HEADROOM_STRIPE_API_KEY": "sk_live_revoked"})
	for _, test := range []struct {
		on   *installation
		args []string
		exit int
		text string
	}{
		{keyless, []string{"sync"}, exitUsage, "HEADROOM_STRIPE_API_KEY: is not set"},
		{keyless, []string{"sweep"}, exitUsage, "HEADROOM_STRIPE_API_KEY: is not set"},
		{refused, []string{"sync"}, exitFailed, "answered 401"},
		{refused, []string{"sweep"}, exitFailed, "answered 401"},
		{a.installation, []string{"sync", "--rate", "0"}, exitUsage, "--rate 0"},
		{a.installation, []string{"replay"}, exitUsage, "EVENT"},
		{a.installation, []string{"replay", "evt_none"}, exitFailed, "unknown stripe event"},
		{a.installation, []string{"events", "--state", "lost"}, exitUsage, "--state"},
		{a.installation, []string{"events", "--limit", "0"}, exitUsage, "--limit 0"},
		{a.installation, []string{"waiting", "--limit", "0"}, exitUsage, "--limit 0"},
		{a.installation, []string{"map", "ws_1", "in_1"}, exitUsage, "cus_"},
		{a.installation, []string{"map", "ws.1", "cus_1"}, exitUsage, "workspace"},
	} {
		_, _, err := test.on.run(append([]string{"stripe"}, test.args...)...)
		if exitCode(err) != test.exit || !strings.Contains(fmt.Sprint(err), test.text) {
			t.Errorf("stripe %v: exit code %d, %v; want %d and %q", test.args, exitCode(err), err, test.exit, test.text)
		}
	}
	if err := busy(webhooks.ErrBusy); !errors.Is(err, webhooks.ErrBusy) || !strings.Contains(err.Error(), "try again") {
		t.Errorf("busy says %v", err)
	}
}

func TestTheLineOfAComparisonTellsHowFarItIs(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	line := &syncLine{out: &out, begun: now()}
	line.told(webhooks.SyncProgress{Listed: 100, Expected: 300, Asked: 40, Waiting: 10})
	line.told(webhooks.SyncProgress{Listed: 200, Expected: 200, Asked: 40, LastError: "answered 429"})
	line.end()
	for _, text := range []string{"\r100 of about 300 subscriptions, 30 looked up (", "\r200 subscriptions, 40 looked up (", "waiting: answered 429"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("it does not tell %q: %q", text, out.String())
		}
	}
	if !strings.HasSuffix(out.String(), "\n") {
		t.Errorf("it does not end: %q", out.String())
	}
}
