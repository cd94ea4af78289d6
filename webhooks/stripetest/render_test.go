package stripetest_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stripe/stripe-go/v79"

	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// scenario plays a bit of everything: its events hold each kind of object.
func scenario(w *world) stripetest.Subscription {
	session := must(w.Checkout(stripetest.CheckoutParams{
		ClientReferenceID: "ws", Subscribe: stripetest.SubscribeParams{Customer: w.customer, Price: w.monthly},
	}))
	sub := w.now(session.Subscription)
	w.Advance(3 * day)
	w.update(sub.ID, stripetest.UpdateParams{Price: w.large, Proration: stripetest.AlwaysInvoice})
	must(w.SchedulePrice(sub.ID, w.monthly))
	w.Advance(32 * day)
	w.ok(w.SetPayment(w.customer, stripetest.PaymentDeclines))
	w.Advance(30 * day)
	w.ok(w.SetPayment(w.customer, stripetest.PaymentSucceeds))
	w.Advance(5 * day)
	must(w.Refund(w.latest(sub.ID).ID, 100))
	d := must(w.OpenDispute(sub.LatestInvoice, false))
	w.ok(w.CloseDispute(d.ID, true))
	w.update(sub.ID, stripetest.UpdateParams{AnchorNow: true})
	w.ok(w.DeleteCustomer(w.customer))
	return w.now(sub.ID)
}

func TestShapesMoveWithTheVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{BillingMode: stripetest.Flexible})
	sub := w.subscribe(stripetest.SubscribeParams{Metadata: map[string]string{"workspace_id": "ws"}})
	w.Advance(day)
	w.update(sub.ID, stripetest.UpdateParams{Price: w.large, Proration: stripetest.AlwaysInvoice})
	for _, v := range stripetest.Versions() {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			moved := slices.Contains([]stripetest.Version{stripetest.Basil, stripetest.Clover, stripetest.Endive}, v)
			top, inItem := any(float64(start().Unix())), any(nil)
			if moved {
				top, inItem = inItem, top
			}
			object := dig(w.last("customer.subscription.updated", v), "data", "object")
			same(t, "top", dig(object, "current_period_start"), top)
			same(t, "item", dig(object, "items", "data", 0, "current_period_start"), inItem)
			same(t, "billing mode", dig(object, "billing_mode", "type") != nil, moved)

			inv := dig(w.last("invoice.paid", v), "data", "object")
			l := dig(inv, "lines", "data", 1)
			same(t, "status", dig(inv, "status"), any("paid"))
			if moved {
				same(t, "gone", []any{dig(inv, "subscription"), dig(inv, "paid"), dig(l, "price"), dig(l, "proration")},
					[]any{nil, nil, nil, nil})
				same(t, "subscription", dig(inv, "parent", "subscription_details", "subscription"), any(sub.ID))
				same(t, "metadata", dig(inv, "parent", "subscription_details", "metadata", "workspace_id"), any("ws"))
				same(t, "price", dig(l, "pricing", "price_details", "price"), any(w.large))
				details := dig(l, "parent", "subscription_item_details")
				same(t, "line", []any{dig(details, "proration"), dig(details, "subscription")}, []any{true, sub.ID})
				return
			}
			same(t, "subscription", []any{dig(inv, "subscription"), dig(inv, "paid"), dig(inv, "parent")}, []any{sub.ID, true, nil})
			same(t, "line", []any{dig(l, "price", "id"), dig(l, "proration"), dig(l, "subscription")}, []any{w.large, true, sub.ID})
		})
	}
}

func TestClassicProrationsComeFromInvoiceItems(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	w.Advance(day)
	w.update(sub.ID, stripetest.UpdateParams{Price: w.large, Proration: stripetest.AlwaysInvoice})
	l := dig(w.last("invoice.paid", stripetest.Basil), "data", "object", "lines", "data", 0, "parent")
	same(t, "new", []any{dig(l, "type"), dig(l, "invoice_item_details", "proration"), dig(l, "invoice_item_details", "subscription")},
		[]any{"invoice_item_details", true, sub.ID})
	l = dig(w.last("invoice.paid", stripetest.V20240620), "data", "object", "lines", "data", 0)
	same(t, "old", []any{dig(l, "type"), dig(l, "proration"), dig(l, "subscription")}, []any{"invoiceitem", true, sub.ID})
}

func TestRefundsAreListedInOldChargesOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	must(w.Refund(sub.LatestInvoice, 0))
	old := dig(w.last("charge.refunded", stripetest.V20200827), "data", "object", "refunds", "data", 0, "amount")
	same(t, "old", old, any(float64(2500)))
	same(t, "new", dig(w.last("charge.refunded", stripetest.V20221115), "data", "object", "refunds"), any(nil))
}

// TestSDKReadsItsOwnVersion holds that the rendering at 2024-06-20 is what the SDK of
// that version expects, for every event of a long scenario.
func TestSDKReadsItsOwnVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	final := scenario(w)
	read := map[string]int{}
	for _, e := range w.Events() {
		var event stripe.Event
		if err := json.Unmarshal(e.Body(stripetest.V20240620), &event); err != nil {
			t.Fatalf("%s: %v", e.Type, err)
		}
		same(t, "envelope", []any{event.ID, string(event.Type), event.Created, event.APIVersion},
			[]any{e.ID, e.Type, e.Created.Unix(), stripe.APIVersion})
		object := map[string]any{
			"subscription": &stripe.Subscription{}, "invoice": &stripe.Invoice{}, "charge": &stripe.Charge{},
			"dispute": &stripe.Dispute{}, "checkout.session": &stripe.CheckoutSession{}, "customer": &stripe.Customer{},
			"price": &stripe.Price{}, "subscription_schedule": &stripe.SubscriptionSchedule{}, "refund": &stripe.Refund{},
			"payment_intent": &stripe.PaymentIntent{},
		}[e.Object]
		if object == nil {
			t.Fatalf("%s is about %q", e.Type, e.Object)
		}
		if err := json.Unmarshal(event.Data.Raw, object); err != nil {
			t.Fatalf("%s: %v", e.Type, err)
		}
		read[e.Object]++
	}
	same(t, "kinds of object", len(read), 10)

	var event stripe.Event
	var sub stripe.Subscription
	events := w.Events()
	last := slices.IndexFunc(events, func(e stripetest.Event) bool { return e.Type == "customer.subscription.deleted" })
	if err := json.Unmarshal(events[last].Body(stripetest.V20240620), &event); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(event.Data.Raw, &sub); err != nil {
		t.Fatal(err)
	}
	same(t, "subscription", []any{sub.ID, string(sub.Status), sub.CurrentPeriodStart, sub.EndedAt, sub.Items.Data[0].Price.ID},
		[]any{final.ID, "canceled", final.Items[0].Start.Unix(), final.EndedAt.Unix(), w.monthly})
}

// TestSDKReadsNewerVersionsAsZero holds the danger that the fake is for.
func TestSDKReadsNewerVersionsAsZero(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	w.subscribe(stripetest.SubscribeParams{})
	for _, e := range w.Events() {
		var event stripe.Event
		var sub stripe.Subscription
		var inv stripe.Invoice
		if err := json.Unmarshal(e.Body(stripetest.Clover), &event); err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case "customer.subscription.updated":
			if err := json.Unmarshal(event.Data.Raw, &sub); err != nil {
				t.Fatal(err)
			}
			same(t, "period", sub.CurrentPeriodStart, int64(0))
		case "invoice.paid":
			if err := json.Unmarshal(event.Data.Raw, &inv); err != nil {
				t.Fatal(err)
			}
			same(t, "paid", []any{inv.Paid, inv.Subscription == nil, inv.Lines.Data[0].Price == nil}, []any{false, true, true})
		}
	}
}

func TestBodiesNeverChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	events := w.Events()
	var before [][]byte
	for _, e := range events {
		before = append(before, e.Body(stripetest.Basil))
	}
	w.update(sub.ID, stripetest.UpdateParams{Price: w.large, Metadata: map[string]string{"a": "b"}})
	w.Advance(70 * day)
	for at, e := range w.Events()[:len(events)] {
		same(t, e.Type, string(e.Body(stripetest.Basil)), string(before[at]))
	}
}
