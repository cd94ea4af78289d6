package stripetest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"
	"github.com/stripe/stripe-go/v79/client"

	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// site is a world with its API on a port.
type site struct {
	*world
	url    string
	client *http.Client
}

func newSite(t *testing.T, o stripetest.Options) *site {
	t.Helper()
	w := newWorld(t, o)
	server := httptest.NewServer(w.Handler())
	t.Cleanup(server.Close)
	return &site{world: w, url: server.URL, client: server.Client()}
}

// ask is a call: its path, and headers in pairs.
func (s *site) ask(path string, headers ...string) (int, map[string]any) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	s.ok(err)
	request.Header.Set("Authorization", "Bearer "+s.Key(false))
	for at := 0; at+1 < len(headers); at += 2 {
		request.Header.Set(headers[at], headers[at+1])
	}
	response, err := s.client.Do(request)
	s.ok(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	s.ok(err)
	if response.Header.Get("Request-Id") == "" {
		s.t.Errorf("GET %s: no Request-Id", path)
	}
	return response.StatusCode, parse(s.t, body)
}

func idsOf(body map[string]any) []string {
	var ids []string
	data, _ := body["data"].([]any)
	for _, object := range data {
		id, _ := dig(object, "id").(string)
		ids = append(ids, id)
	}
	return ids
}

func TestRetrieveHonoursTheVersion(t *testing.T) {
	t.Parallel()
	s := newSite(t, stripetest.Options{})
	sub := s.subscribe(stripetest.SubscribeParams{})
	_, body := s.ask("/v1/subscriptions/" + sub.ID)
	same(t, "default", dig(body, "current_period_start"), any(float64(start().Unix())))
	_, body = s.ask("/v1/subscriptions/"+sub.ID, "Stripe-Version", string(stripetest.Clover))
	same(t, "asked", dig(body, "items", "data", 0, "current_period_start"), any(float64(start().Unix())))
	status, _ := s.ask("/v1/subscriptions/"+sub.ID, "Stripe-Version", "newest")
	same(t, "no version", status, http.StatusBadRequest)
	for _, path := range []string{
		"/v1/invoices/" + sub.LatestInvoice, "/v1/customers/" + s.customer, "/v1/charges/" + must(s.ChargeOf(sub.LatestInvoice)).ID,
		"/v1/disputes/" + must(s.OpenDispute(sub.LatestInvoice, false)).ID, "/v1/events/" + s.Events()[0].ID,
	} {
		status, body := s.ask(path)
		same(t, path, []any{status, path[len(path)-len(body["id"].(string)):]}, []any{http.StatusOK, body["id"]})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := newSite(t, stripetest.Options{})
	sub := s.subscribe(stripetest.SubscribeParams{})
	connected := s.CreateCustomer(stripetest.CustomerParams{Account: "acct_1", Livemode: true})
	theirs := s.subscribe(stripetest.SubscribeParams{Customer: connected.ID})
	live := "Bearer " + s.Key(true)
	cases := []struct {
		name, path string
		headers    []string
		status     int
		code       any
	}{
		{"wrong key", "/v1/subscriptions/" + sub.ID, []string{"Authorization", "Bearer sk_test_other"}, 401, nil},
		{"unknown id", "/v1/subscriptions/sub_none", nil, 404, "resource_missing"},
		{"test object with the live key", "/v1/subscriptions/" + sub.ID, []string{"Authorization", live}, 404, "resource_missing"},
		{"without its account", "/v1/subscriptions/" + theirs.ID, []string{"Authorization", live}, 404, "resource_missing"},
		{"with its account", "/v1/subscriptions/" + theirs.ID, []string{"Authorization", live, "Stripe-Account", "acct_1"}, 200, nil},
		{"unknown account", "/v1/subscriptions/" + theirs.ID, []string{"Stripe-Account", "acct_2"}, 403, "account_invalid"},
		{"unknown path", "/v1/coupons", nil, 404, nil},
		{"bad limit", "/v1/subscriptions?limit=101", nil, 400, nil},
		{"bad cursor", "/v1/subscriptions?starting_after=sub_none", nil, 400, "resource_missing"},
		{"expand", "/v1/subscriptions?expand[]=data.customer", nil, 400, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			status, body := s.ask(c.path, c.headers...)
			same(t, "answer", []any{status, dig(body, "error", "code")}, []any{c.status, c.code})
		})
	}
}

func TestListsPageBothWays(t *testing.T) {
	t.Parallel()
	s := newSite(t, stripetest.Options{})
	var made []string
	for range 7 {
		made = append(made, s.subscribe(stripetest.SubscribeParams{}).ID)
		s.Advance(time.Hour)
	}
	newest := slices.Clone(made)
	slices.Reverse(newest)
	_, body := s.ask("/v1/subscriptions?limit=3")
	same(t, "first", []any{idsOf(body), body["has_more"]}, []any{newest[:3], true})
	_, body = s.ask("/v1/subscriptions?limit=3&starting_after=" + newest[5])
	same(t, "last", []any{idsOf(body), body["has_more"]}, []any{newest[6:], false})
	_, body = s.ask("/v1/subscriptions?limit=3&ending_before=" + made[0])
	same(t, "towards the newer", []any{idsOf(body), body["has_more"]}, []any{newest[3:6], true})
	since := start().Add(5 * time.Hour).Unix()
	_, body = s.ask("/v1/subscriptions?created[gte]=" + strconv.FormatInt(since, 10))
	same(t, "created", idsOf(body), newest[:2])

	must(s.Cancel(made[6]))
	_, body = s.ask("/v1/subscriptions")
	same(t, "canceled are left out", idsOf(body), newest[1:])
	_, body = s.ask("/v1/subscriptions?status=all")
	same(t, "all", idsOf(body), newest)
	_, body = s.ask("/v1/subscriptions?status=all&customer=cus_none")
	same(t, "none", idsOf(body), []string(nil))
}

func TestInvoicesAndSessionsOfASubscription(t *testing.T) {
	t.Parallel()
	s := newSite(t, stripetest.Options{})
	session := must(s.Checkout(stripetest.CheckoutParams{
		Subscribe: stripetest.SubscribeParams{Customer: s.customer, Price: s.monthly},
	}))
	s.subscribe(stripetest.SubscribeParams{})
	s.Advance(70 * day)
	_, body := s.ask("/v1/invoices?limit=2&subscription=" + session.Subscription)
	first := idsOf(body)
	_, body = s.ask("/v1/invoices?limit=2&subscription=" + session.Subscription + "&starting_after=" + first[1])
	same(t, "invoices", []any{len(first), idsOf(body)}, []any{2, []string{session.Invoice}})
	_, body = s.ask("/v1/checkout/sessions?subscription=" + session.Subscription)
	same(t, "sessions", idsOf(body), []string{session.ID})
}

func TestEventsAreListedForThirtyDays(t *testing.T) {
	t.Parallel()
	s := newSite(t, stripetest.Options{Version: stripetest.Basil})
	sub := s.subscribe(stripetest.SubscribeParams{})
	old := s.Events()[len(s.Events())-1]
	s.Advance(29 * day)
	_, body := s.ask("/v1/events?types[]=customer.subscription.*", "Stripe-Version", string(stripetest.V20240620))
	same(t, "types", len(idsOf(body)), 2)
	same(t, "the account's version", dig(body, "data", 0, "api_version"), any(string(stripetest.Basil)))
	status, _ := s.ask("/v1/events/" + old.ID)
	same(t, "there", status, http.StatusOK)
	s.Advance(3 * day)
	status, _ = s.ask("/v1/events/" + old.ID)
	same(t, "gone", status, http.StatusNotFound)
	_, body = s.ask("/v1/events?limit=100")
	want := s.EventsFrom(slices.IndexFunc(s.Events(), func(e stripetest.Event) bool { return e.Created.After(sub.Created) }))
	same(t, "left", len(idsOf(body)), len(want))

	// Paging towards the newer with ending_before, page by page, is in the order of time.
	oldest := want[0].ID
	var seen []string
	for cursor := oldest; ; {
		_, body := s.ask("/v1/events?limit=2&ending_before=" + cursor)
		page := idsOf(body)
		if len(page) == 0 {
			break
		}
		cursor = page[0]
		slices.Reverse(page)
		seen = append(seen, page...)
	}
	var inOrder []string
	for _, e := range want[1:] {
		inOrder = append(inOrder, e.ID)
	}
	same(t, "order", seen, inOrder)
}

func TestTestClockObjectsAreListedWhenAskedFor(t *testing.T) {
	t.Parallel()
	s := newSite(t, stripetest.Options{})
	clock := s.CreateTestClock(start().AddDate(5, 0, 0))
	c := s.CreateCustomer(stripetest.CustomerParams{TestClock: clock})
	sub := s.subscribe(stripetest.SubscribeParams{Customer: c.ID})
	_, body := s.ask("/v1/subscriptions")
	same(t, "hidden", len(idsOf(body)), 0)
	for _, filter := range []string{"customer=" + c.ID, "test_clock=" + clock} {
		_, body = s.ask("/v1/subscriptions?" + filter)
		same(t, filter, idsOf(body), []string{sub.ID})
	}
	s.Advance(100 * day)
	same(t, "stands still", len(s.truth(sub.ID).Periods), 1)
	s.ok(s.AdvanceTestClock(clock, start().AddDate(5, 2, 1)))
	same(t, "moves", len(s.truth(sub.ID).Periods), 3)
	if err := s.AdvanceTestClock("clock_none", start()); err == nil {
		t.Error("an unknown clock was moved")
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s := newSite(t, stripetest.Options{})
	sub := s.subscribe(stripetest.SubscribeParams{})
	path := "/v1/subscriptions/" + sub.ID
	s.Break(stripetest.Fault{Path: "/v1/invoices", Status: 500})
	s.Break(stripetest.Fault{Path: path, Times: 2, Status: 429, Code: "lock_timeout"})
	s.Break(stripetest.Fault{Path: path, Status: 503})
	var answers []any
	for range 4 {
		status, body := s.ask(path)
		answers = append(answers, status, dig(body, "error", "code"))
	}
	same(t, "answers", answers, []any{429, "lock_timeout", 429, "lock_timeout", 503, nil, 200, nil})
	same(t, "calls", s.CallsTo("/v1/subscriptions"), 4)
	same(t, "statuses", []int{s.Calls()[0].Status, s.Calls()[3].Status}, []int{429, 200})
	s.ForgetCalls()
	same(t, "forgotten", len(s.Calls()), 0)

	s.LimitRate(1, time.Hour)
	first, _ := s.ask(path)
	second, body := s.ask(path)
	same(t, "rate", []any{first, second, dig(body, "error", "code")}, []any{200, 429, "rate_limit"})
	s.Mend()
	status, _ := s.ask("/v1/invoices/" + sub.LatestInvoice)
	same(t, "mended", status, 200)
}

func TestHeldAnswerIsAsOldAsItsCall(t *testing.T) {
	t.Parallel()
	s := newSite(t, stripetest.Options{})
	sub := s.subscribe(stripetest.SubscribeParams{})
	hold := make(chan struct{})
	s.Break(stripetest.Fault{Hold: hold})
	got := make(chan any)
	go func() {
		_, body := s.ask("/v1/subscriptions/" + sub.ID)
		got <- dig(body, "status")
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for calls := s.Calls(); len(calls) == 0 || calls[0].Status == 0; calls = s.Calls() {
		<-tick.C
	}
	must(s.Cancel(sub.ID))
	close(hold)
	same(t, "status", <-got, any("active"))
	_, body := s.ask("/v1/subscriptions/" + sub.ID)
	same(t, "now", dig(body, "status"), any("canceled"))
}

func TestCutAndSlowAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t, stripetest.Options{})
	call := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/customers/"+s.customer, nil)
		s.ok(err)
		request.SetBasicAuth(s.Key(false), "")
		response, err := s.client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.ReadAll(response.Body)
		return err
	}
	s.Break(stripetest.Fault{Cut: true})
	if err := call(t.Context()); err == nil {
		t.Error("a cut answer was read")
	}
	s.Break(stripetest.Fault{Delay: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a slow answer: %v", err)
	}
	s.Break(stripetest.Fault{Delay: time.Millisecond})
	s.ok(call(t.Context()))
}

func TestSDKIsAClientOfIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, stripetest.Options{})
	connected := s.CreateCustomer(stripetest.CustomerParams{Account: "acct_1"})
	sub := s.subscribe(stripetest.SubscribeParams{Customer: connected.ID})
	config := &stripe.BackendConfig{
		URL: stripe.String(s.url), HTTPClient: s.client, MaxNetworkRetries: stripe.Int64(0),
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	}
	api := client.New(s.Key(false), &stripe.Backends{API: stripe.GetBackendWithConfig(stripe.APIBackend, config)})
	params := &stripe.SubscriptionParams{}
	params.SetStripeAccount("acct_1")
	got, err := api.Subscriptions.Get(sub.ID, params)
	s.ok(err)
	same(t, "subscription", []any{got.ID, got.CurrentPeriodEnd}, []any{sub.ID, monthLater().Unix()})
	_, err = api.Subscriptions.Get(sub.ID, nil)
	var refusal *stripe.Error
	if !errors.As(err, &refusal) || refusal.Code != stripe.ErrorCodeResourceMissing || refusal.RequestID == "" {
		t.Errorf("without the account: %v", err)
	}
	list := &stripe.EventListParams{Types: []*string{stripe.String("invoice.paid")}}
	list.SetStripeAccount("acct_1")
	events := api.Events.List(list)
	n := 0
	for events.Next() {
		same(t, "account", events.Event().Account, "acct_1")
		n++
	}
	s.ok(events.Err())
	same(t, "events", n, 1)
	query, err := url.ParseQuery(s.Calls()[2].Query)
	s.ok(err)
	same(t, "query", query.Get("types[0]"), "invoice.paid")
}
