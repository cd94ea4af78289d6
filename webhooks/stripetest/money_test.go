package stripetest_test

import (
	"testing"
	"time"

	"github.com/headroomhq/headroom/webhooks/stripetest"
)

func TestRefundLeavesSubscriptionAndInvoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	c := must(w.Refund(sub.LatestInvoice, 1000))
	same(t, "refunded", c.Refunded, int64(1000))
	object := dig(w.last("charge.refunded", stripetest.V20240620), "data", "object")
	same(t, "part", []any{dig(object, "amount_refunded"), dig(object, "refunded"), dig(object, "invoice")},
		[]any{float64(1000), false, sub.LatestInvoice})
	must(w.Refund(sub.LatestInvoice, 0))
	object = dig(w.last("charge.refunded", stripetest.Basil), "data", "object")
	same(t, "all", []any{dig(object, "refunded"), dig(object, "invoice")}, []any{true, nil})
	same(t, "status", []any{w.now(sub.ID).Status, w.latest(sub.ID).Status}, []any{stripetest.Active, stripetest.InvoicePaid})
	if _, err := w.Refund(sub.LatestInvoice, 1); err == nil {
		t.Error("more was refunded than was paid")
	}
}

func TestDisputes(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		inquiry bool
		play    func(*world, string)
		want    []string
		status  string
	}{
		{
			"lost", false, func(w *world, id string) { w.ok(w.CloseDispute(id, false)) },
			[]string{"charge.dispute.created", "charge.dispute.funds_withdrawn", "charge.dispute.updated", "charge.dispute.closed"},
			"lost",
		},
		{
			"won", false, func(w *world, id string) { w.ok(w.CloseDispute(id, true)) },
			[]string{
				"charge.dispute.created", "charge.dispute.funds_withdrawn", "charge.dispute.updated", "charge.dispute.closed",
				"charge.dispute.funds_reinstated",
			},
			"won",
		},
		{
			"inquiry moves no money", true, func(w *world, id string) { w.ok(w.CloseDispute(id, true)) },
			[]string{"charge.dispute.created", "charge.dispute.updated", "charge.dispute.closed"},
			"warning_closed",
		},
		{
			"inquiry becomes a dispute", true, func(w *world, id string) { w.ok(w.EscalateDispute(id)) },
			[]string{"charge.dispute.created", "charge.dispute.updated", "charge.dispute.funds_withdrawn"},
			"needs_response",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Options{})
			sub := w.subscribe(stripetest.SubscribeParams{})
			n := w.count()
			d := must(w.OpenDispute(sub.LatestInvoice, c.inquiry))
			c.play(w, d.ID)
			same(t, "events", w.since(n), c.want)
			events := w.EventsFrom(n)
			same(t, "status", dig(parse(t, events[len(events)-1].Body(stripetest.Basil)), "data", "object", "status"), any(c.status))
			same(t, "subscription", w.now(sub.ID).Status, stripetest.Active)
			same(t, "belongs to", events[0].Subscription, sub.ID)
		})
	}
}

func TestDeletedCustomerLosesItsSubscriptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	one, two := w.subscribe(stripetest.SubscribeParams{}), w.subscribe(stripetest.SubscribeParams{})
	n := w.count()
	w.ok(w.DeleteCustomer(w.customer))
	same(t, "events", w.since(n), []string{
		"customer.subscription.deleted", "customer.subscription.deleted", "customer.deleted",
	})
	same(t, "still there", []stripetest.Status{w.now(one.ID).Status, w.now(two.ID).Status},
		[]stripetest.Status{stripetest.Canceled, stripetest.Canceled})
	if _, err := w.Subscribe(stripetest.SubscribeParams{Customer: w.customer, Price: w.monthly}); err == nil {
		t.Error("a deleted customer subscribed")
	}
}

func TestCheckout(t *testing.T) {
	t.Parallel()
	params := func(w *world) stripetest.CheckoutParams {
		return stripetest.CheckoutParams{
			ClientReferenceID: "ws", Metadata: map[string]string{"workspace_id": "ws"},
			Subscribe: stripetest.SubscribeParams{Customer: w.customer, Price: w.monthly},
		}
	}
	t.Run("paid", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Options{})
		session := must(w.Checkout(params(w)))
		same(t, "session", []string{session.Status, session.PaymentStatus}, []string{"complete", "paid"})
		object := dig(w.last("checkout.session.completed", stripetest.V20240620), "data", "object")
		same(t, "reference", dig(object, "client_reference_id"), any("ws"))
		same(t, "metadata stays with the session", len(w.now(session.Subscription).Metadata), 0)
	})
	t.Run("trial", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Options{})
		p := params(w)
		p.Subscribe.Trial = day
		same(t, "payment", must(w.Checkout(p)).PaymentStatus, "no_payment_required")
	})
	for name, succeeds := range map[string]bool{"delayed and paid": true, "delayed and failed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Options{})
			w.ok(w.SetPayment(w.customer, stripetest.PaymentDelayed))
			session := must(w.Checkout(params(w)))
			same(t, "session", []string{session.Status, session.PaymentStatus}, []string{"complete", "unpaid"})
			same(t, "status", w.now(session.Subscription).Status, stripetest.Incomplete)
			w.Advance(3 * time.Hour)
			w.ok(w.SettleCheckout(session.ID, succeeds))
			events := w.Events()
			want, status := "checkout.session.async_payment_succeeded", stripetest.Active
			if !succeeds {
				want, status = "checkout.session.async_payment_failed", stripetest.Incomplete
			}
			same(t, "event", events[len(events)-1].Type, want)
			same(t, "after", w.now(session.Subscription).Status, status)
		})
	}
	t.Run("expired", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Options{})
		session := must(w.AbandonCheckout(params(w)))
		same(t, "session", []string{session.Status, session.Subscription}, []string{"expired", ""})
	})
}

func TestOneOffInvoiceHasNoSubscription(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	inv := must(w.InvoiceOnce(w.customer, 700))
	same(t, "paid", inv.Status, stripetest.InvoicePaid)
	old := dig(w.last("invoice.paid", stripetest.V20240620), "data", "object")
	same(t, "old shape", dig(old, "subscription"), any(nil))
	now := dig(w.last("invoice.paid", stripetest.Basil), "data", "object")
	same(t, "new shape", dig(now, "parent"), any(nil))
}

func TestVoidedAndGivenUpInvoices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{AfterDunning: stripetest.DunningLeaves})
	w.ok(w.SetPayment(w.customer, stripetest.PaymentDeclines))
	first := w.subscribe(stripetest.SubscribeParams{})
	w.ok(w.VoidInvoice(first.LatestInvoice))
	same(t, "first invoice voided", w.now(first.ID).Status, stripetest.IncompleteExpired)

	w.ok(w.SetPayment(w.customer, stripetest.PaymentSucceeds))
	sub := w.subscribe(stripetest.SubscribeParams{})
	w.ok(w.SetPayment(w.customer, stripetest.PaymentDeclines))
	w.Advance(32 * day)
	w.ok(w.MarkUncollectible(w.latest(sub.ID).ID))
	same(t, "given up", w.truth(sub.ID).Periods[1].Payment, stripetest.PeriodFailed)
	w.ok(w.SetPayment(w.customer, stripetest.PaymentSucceeds))
	w.ok(w.PayInvoice(w.latest(sub.ID).ID))
	same(t, "paid after all", w.truth(sub.ID).Periods[1].Payment, stripetest.PeriodPaid)
	if err := w.VoidInvoice(w.latest(sub.ID).ID); err == nil {
		t.Error("a paid invoice was voided")
	}
}
