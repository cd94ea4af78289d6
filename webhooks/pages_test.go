package webhooks_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks"
)

// large is a Stripe with one subscription whose plan is on the second page of its items,
// and one invoice whose line for it is on the second page of its lines.
func large(w http.ResponseWriter, r *http.Request) {
	item := func(n int, price string) string {
		return fmt.Sprintf(`{"id":"si_%d","object":"subscription_item","price":{"id":%q},"quantity":%d,"current_period_start":1795000000,"current_period_end":1797592000}`, n, price, n)
	}
	line := func(n int, proration bool) string {
		return fmt.Sprintf(`{"id":"il_%d","amount":%d,"period":{"start":1795000000,"end":1797592000},"parent":{"subscription_item_details":
			{"subscription":"sub_large","subscription_item":"si_%d","proration":%t}}}`, n, n, n, proration)
	}
	page := func(more bool, elements ...string) string {
		return fmt.Sprintf(`{"object":"list","has_more":%t,"data":[%s]}`, more, strings.Join(elements, ","))
	}
	second := r.URL.Query().Get("starting_after") != ""
	answer := ""
	switch path := r.URL.Path; {
	case path == "/v1/subscriptions/sub_large":
		answer = fmt.Sprintf(`{"id":"sub_large","object":"subscription","status":"active","created":1795000000,"livemode":false,"customer":"cus_1",
			"metadata":{"workspace_id":"acme"},"items":%s}`, page(true, item(1, "price_addon")))
	case path == "/v1/subscription_items" && second:
		answer = page(false, item(2, "price_pro"))
	case path == "/v1/subscription_items":
		answer = page(true, item(1, "price_addon"))
	case path == "/v1/invoices":
		answer = page(false, fmt.Sprintf(`{"id":"in_1","object":"invoice","status":"paid","created":1795000000,"livemode":false,"lines":%s}`, page(true, line(1, true))))
	case path == "/v1/invoices/in_1/lines" && second:
		answer = page(false, line(2, false))
	case path == "/v1/invoices/in_1/lines":
		answer = page(true, line(1, true))
	default:
		http.Error(w, `{"error":{"type":"invalid_request_error","message":"no such thing"}}`, http.StatusNotFound)
		return
	}
	_, _ = w.Write([]byte(answer))
}

func TestWhatIsListedInPartIsAskedForWhole(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(large))
	defer server.Close()
	api, err := webhooks.NewAPI(webhooks.APIOptions{Key: "sk_test_1", URL: server.URL + "/"})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	s := newSite(t, subscriptions.Policy{})
	w := webhooks.NewWorker(webhooks.WorkerOptions{Ledger: s.ledger, Store: s.store, API: api})
	key := webhooks.SyncKey{SubscriptionID: "sub_large"}
	generation, err := s.ledger.Ask(t.Context(), key, "a test", time.Now())
	s.ok(err)
	s.ok(w.LookUp(t.Context(), key, generation))
	if r := s.last("sub_large"); r.Plan != "pro" || r.Quantity != 2 || r.Payment != "paid" {
		t.Errorf("the row is %+v", r)
	}
}
