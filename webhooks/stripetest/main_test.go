package stripetest_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

func TestMain(m *testing.M) { schematest.Main(m) }

// day is 24 hours; start is where the clock of a world begins, monthLater a month on.
const day = 24 * time.Hour

func start() time.Time      { return time.Date(2024, 7, 1, 0, 0, 0, 0, time.UTC) }
func monthLater() time.Time { return start().AddDate(0, 1, 0) }
func yearLater() time.Time  { return start().AddDate(1, 0, 0) }

// world is a fake with a customer and two prices, and what a test asks of it.
type world struct {
	*stripetest.Stripe
	t                      *testing.T
	customer               string
	monthly, large, yearly string
}

func newWorld(t *testing.T, o stripetest.Options) *world {
	t.Helper()
	s := stripetest.New(o)
	w := &world{Stripe: s, t: t, customer: s.CreateCustomer(stripetest.CustomerParams{}).ID}
	w.monthly = s.CreatePrice(stripetest.PriceParams{ID: "price_monthly", Amount: 2500}).ID
	w.large = s.CreatePrice(stripetest.PriceParams{ID: "price_large", Amount: 5000}).ID
	w.yearly = s.CreatePrice(stripetest.PriceParams{ID: "price_yearly", Amount: 25000, Interval: stripetest.Year}).ID
	return w
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) subscribe(p stripetest.SubscribeParams) stripetest.Subscription {
	w.t.Helper()
	if p.Customer == "" {
		p.Customer = w.customer
	}
	if p.Price == "" && len(p.Items) == 0 {
		p.Price = w.monthly
	}
	sub, err := w.Subscribe(p)
	w.ok(err)
	return sub
}

func (w *world) update(id string, p stripetest.UpdateParams) stripetest.Subscription {
	w.t.Helper()
	sub, err := w.Update(id, p)
	w.ok(err)
	return sub
}

func (w *world) now(id string) stripetest.Subscription {
	w.t.Helper()
	sub, err := w.Subscription(id)
	w.ok(err)
	return sub
}

func (w *world) latest(id string) stripetest.Invoice {
	w.t.Helper()
	inv, err := w.Invoice(w.now(id).LatestInvoice)
	w.ok(err)
	return inv
}

func (w *world) truth(id string) stripetest.Truth {
	w.t.Helper()
	truth, err := w.Truth(id, nil)
	w.ok(err)
	return truth
}

// since is the types of the events after the first n about billing, without the noise of
// charges and invoice.updated.
func (w *world) since(n int) []string {
	var types []string
	for _, e := range w.EventsFrom(n) {
		quiet := e.Type == "invoice.updated" || e.Type == "invoice.payment_succeeded" || e.Object == "charge" ||
			e.Object == "payment_intent" || strings.HasPrefix(e.Type, "price.") || e.Type == "customer.created"
		if !quiet {
			types = append(types, e.Type)
		}
	}
	return types
}

func (w *world) count() int { return len(w.Events()) }

// last is the newest event of a type, rendered.
func (w *world) last(typ string, v stripetest.Version) map[string]any {
	w.t.Helper()
	events := w.Events()
	for at := len(events) - 1; at >= 0; at-- {
		if events[at].Type == typ {
			return parse(w.t, events[at].Body(v))
		}
	}
	w.t.Fatalf("no event %s", typ)
	return nil
}

func parse(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// dig is the value at a path of keys and indexes.
func dig(value any, path ...any) any {
	for _, step := range path {
		switch at := step.(type) {
		case string:
			inside, _ := value.(map[string]any)
			value = inside[at]
		case int:
			inside, _ := value.([]any)
			if at >= len(inside) {
				return nil
			}
			value = inside[at]
		}
	}
	return value
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
