package stripetest_test

import (
	"testing"
	"time"

	"github.com/headroomhq/headroom/webhooks/stripetest"
)

func TestFirstPaymentTellsIncompleteFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	n := w.count()
	sub := w.subscribe(stripetest.SubscribeParams{})
	same(t, "events", w.since(n), []string{
		"invoice.created", "invoice.finalized", "customer.subscription.created", "invoice.paid", "customer.subscription.updated",
	})
	same(t, "created", dig(w.last("customer.subscription.created", stripetest.Basil), "data", "object", "status"), any("incomplete"))
	updated := w.last("customer.subscription.updated", stripetest.Basil)
	same(t, "updated", dig(updated, "data", "object", "status"), any("active"))
	same(t, "before", dig(updated, "data", "previous_attributes"), any(map[string]any{"status": "incomplete"}))
	for _, e := range w.EventsFrom(n) {
		same(t, "second", e.Created, sub.Created)
	}
}

func TestRenewalRollsAnHourBeforeItIsPaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	n := w.count()
	w.AdvanceTo(monthLater().Add(15 * time.Second))
	same(t, "too early", w.since(n), []string(nil))
	w.AdvanceTo(monthLater().Add(59 * time.Minute))
	same(t, "roll", w.since(n), []string{"invoice.created", "customer.subscription.updated"})
	rolled := w.now(sub.ID)
	same(t, "period", rolled.Items[0].Start, monthLater())
	same(t, "status", rolled.Status, stripetest.Active)
	same(t, "draft", w.latest(sub.ID).Status, stripetest.InvoiceDraft)
	same(t, "payment", w.truth(sub.ID).Periods[1].Payment, stripetest.PeriodPending)

	n = w.count()
	w.AdvanceTo(monthLater().Add(2 * time.Hour))
	same(t, "collect", w.since(n), []string{"invoice.finalized", "invoice.paid"})
	same(t, "paid", w.truth(sub.ID).Periods[1].Payment, stripetest.PeriodPaid)
}

func TestRenewalEventAsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	price := w.CreatePrice(stripetest.PriceParams{Amount: 100, Interval: stripetest.Day})
	sub := w.subscribe(stripetest.SubscribeParams{Price: price.ID})
	end, before := sub.Items[0].End, sub.LatestInvoice
	w.AdvanceTo(end.Add(time.Minute))
	e := w.last("customer.subscription.updated", "2025-08-27.basil")
	object, previous := dig(e, "data", "object"), dig(e, "data", "previous_attributes")
	same(t, "created", dig(e, "created"), any(float64(end.Add(16*time.Second).Unix())))
	same(t, "request id", dig(e, "request", "id"), any(nil))
	same(t, "on top", dig(object, "current_period_start"), any(nil))
	same(t, "item", dig(object, "items", "data", 0, "current_period_start"), any(float64(end.Unix())))
	same(t, "old item", dig(previous, "items", "data", 0, "current_period_end"), any(float64(end.Unix())))
	same(t, "old invoice", dig(previous, "latest_invoice"), any(before))
	same(t, "attributes", len(previous.(map[string]any)), 2)
}

func TestRenewMovesThroughTheDraftHour(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{BillingMode: stripetest.Flexible})
	sub := w.subscribe(stripetest.SubscribeParams{})
	sub = must(w.Renew(sub.ID))
	same(t, "period", sub.Items[0].Start, monthLater())
	same(t, "payment", w.truth(sub.ID).Periods[1].Payment, stripetest.PeriodPaid)
	must(w.Pause(sub.ID))
	if _, err := w.Renew(sub.ID); err == nil {
		t.Error("a paused subscription was renewed")
	}
}

func TestInvoicePeriodLooksBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	first := w.latest(sub.ID)
	same(t, "instant", []time.Time{first.PeriodStart, first.PeriodEnd}, []time.Time{start(), start()})
	w.Advance(35 * day)
	second := w.latest(sub.ID)
	same(t, "back", []time.Time{second.PeriodStart, second.PeriodEnd}, []time.Time{start(), monthLater()})
	same(t, "reason", second.Reason, stripetest.ReasonCycle)
}

func TestShortMonthsKeepTheAnchorsDay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{Start: time.Date(2024, 1, 31, 12, 0, 0, 0, time.UTC)})
	sub := w.subscribe(stripetest.SubscribeParams{})
	w.Advance(100 * day)
	var starts []string
	for _, p := range w.truth(sub.ID).Periods {
		starts = append(starts, p.Start.Format(time.DateOnly))
	}
	same(t, "starts", starts, []string{"2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30"})
}

func TestFailedRenewalGoesThroughDunning(t *testing.T) {
	t.Parallel()
	cases := []struct {
		after stripetest.DunningEnd
		want  stripetest.Status
		last  string
	}{
		{stripetest.DunningCancels, stripetest.Canceled, "customer.subscription.deleted"},
		{stripetest.DunningUnpaid, stripetest.Unpaid, "customer.subscription.updated"},
		{stripetest.DunningLeaves, stripetest.PastDue, "invoice.payment_failed"},
	}
	for _, c := range cases {
		t.Run(string(c.after), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Options{AfterDunning: c.after})
			sub := w.subscribe(stripetest.SubscribeParams{})
			w.ok(w.SetPayment(w.customer, stripetest.PaymentDeclines))
			n := w.count()
			w.Advance(32 * day)
			same(t, "first failure", w.since(n), []string{
				"invoice.created", "customer.subscription.updated", "invoice.finalized", "invoice.payment_failed",
				"customer.subscription.updated",
			})
			same(t, "status", w.now(sub.ID).Status, stripetest.PastDue)
			same(t, "next attempt", w.latest(sub.ID).NextAttempt, monthLater().Add(time.Hour+16*time.Second+3*day))
			w.Advance(16 * day)
			same(t, "end", w.now(sub.ID).Status, c.want)
			same(t, "attempts", w.latest(sub.ID).AttemptCount, 4)
			types := w.since(n)
			same(t, "last", types[len(types)-1], c.last)
			same(t, "payment", w.truth(sub.ID).Periods[1].Payment, stripetest.PeriodFailed)
		})
	}
}

func TestRecoveredPaymentEndsDunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	w.ok(w.SetPayment(w.customer, stripetest.PaymentDeclines))
	w.Advance(32 * day)
	w.ok(w.SetPayment(w.customer, stripetest.PaymentSucceeds))
	n := w.count()
	w.Advance(4 * day)
	same(t, "events", w.since(n), []string{"invoice.paid", "customer.subscription.updated"})
	same(t, "status", w.now(sub.ID).Status, stripetest.Active)
	same(t, "payment", w.truth(sub.ID).Periods[1].Payment, stripetest.PeriodPaid)
}

func TestShortPeriodsRollWhilePastDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	week := w.CreatePrice(stripetest.PriceParams{Amount: 100, Interval: stripetest.Week})
	sub := w.subscribe(stripetest.SubscribeParams{Price: week.ID})
	w.ok(w.SetPayment(w.customer, stripetest.PaymentDeclines))
	w.Advance(16 * day)
	truth := w.truth(sub.ID)
	same(t, "status", truth.Subscription.Status, stripetest.PastDue)
	same(t, "periods", len(truth.Periods), 3)
}

func TestUnpaidRollsOnAndWantsTheLatestInvoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{AfterDunning: stripetest.DunningUnpaid})
	sub := w.subscribe(stripetest.SubscribeParams{})
	w.ok(w.SetPayment(w.customer, stripetest.PaymentDeclines))
	w.Advance(95 * day)
	truth := w.truth(sub.ID)
	same(t, "status", truth.Subscription.Status, stripetest.Unpaid)
	same(t, "periods", len(truth.Periods), 4)
	invoices := w.Invoices(sub.ID)
	same(t, "drafts pile up", []stripetest.InvoiceStatus{invoices[2].Status, invoices[3].Status},
		[]stripetest.InvoiceStatus{stripetest.InvoiceDraft, stripetest.InvoiceDraft})

	w.ok(w.SetPayment(w.customer, stripetest.PaymentSucceeds))
	w.ok(w.PayInvoice(invoices[1].ID))
	same(t, "an older one is not enough", w.now(sub.ID).Status, stripetest.Unpaid)
	w.ok(w.PayInvoice(invoices[3].ID))
	same(t, "the latest is", w.now(sub.ID).Status, stripetest.Active)
}

func TestIncompleteExpiresAfter23Hours(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	w.ok(w.SetPayment(w.customer, stripetest.PaymentDeclines))
	sub := w.subscribe(stripetest.SubscribeParams{})
	same(t, "status", sub.Status, stripetest.Incomplete)
	w.Advance(23*time.Hour - time.Second)
	same(t, "still", w.now(sub.ID).Status, stripetest.Incomplete)
	w.Advance(time.Second)
	same(t, "expired", w.now(sub.ID).Status, stripetest.IncompleteExpired)
	same(t, "invoice", w.latest(sub.ID).Status, stripetest.InvoiceVoid)
	w.Advance(90 * day)
	same(t, "periods", len(w.truth(sub.ID).Periods), 1)

	paid := w.subscribe(stripetest.SubscribeParams{PaymentBehavior: stripetest.DefaultIncomplete})
	same(t, "not tried", w.latest(paid.ID).AttemptCount, 0)
	w.ok(w.SetPayment(w.customer, stripetest.PaymentSucceeds))
	w.ok(w.PayInvoice(paid.LatestInvoice))
	same(t, "paid in time", w.now(paid.ID).Status, stripetest.Active)
	w.ok(w.SetPayment(w.customer, stripetest.PaymentDeclines))
	if _, err := w.Subscribe(stripetest.SubscribeParams{
		Customer: w.customer, Price: w.monthly, PaymentBehavior: stripetest.ErrorIfIncomplete,
	}); err == nil {
		t.Error("error_if_incomplete made a subscription")
	}
}

func TestLatePaymentOfACanceledSubscriptionChangesItNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	w.ok(w.SetPayment(w.customer, stripetest.PaymentDeclines))
	w.Advance(32 * day)
	must(w.Cancel(sub.ID))
	w.ok(w.SetPayment(w.customer, stripetest.PaymentSucceeds))
	n := w.count()
	w.Advance(30 * day)
	same(t, "collected no more", w.since(n), []string(nil))
	w.ok(w.PayInvoice(w.latest(sub.ID).ID))
	same(t, "events", w.since(n), []string{"invoice.paid"})
	same(t, "status", w.now(sub.ID).Status, stripetest.Canceled)
}

func TestFreeAndCoveredInvoicesArePaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	free := w.CreatePrice(stripetest.PriceParams{})
	w.ok(w.SetPayment(w.customer, stripetest.PaymentMethodMissing))
	zero := w.subscribe(stripetest.SubscribeParams{Price: free.ID})
	same(t, "nothing to pay", zero.Status, stripetest.Active)
	w.Advance(32 * day)
	same(t, "renewed", w.truth(zero.ID).Periods[1].Payment, stripetest.PeriodPaid)

	w.ok(w.Credit(w.customer, 3000))
	covered := w.subscribe(stripetest.SubscribeParams{})
	same(t, "covered", []any{covered.Status, w.latest(covered.ID).AmountDue}, []any{stripetest.Active, int64(0)})
	same(t, "credit left", must(w.Customer(w.customer)).Balance, int64(-500))

	w.Advance(32 * day)
	same(t, "status", w.now(covered.ID).Status, stripetest.PastDue)
	w.ok(w.PayInvoiceOutOfBand(w.latest(covered.ID).ID))
	same(t, "out of band", []any{w.now(covered.ID).Status, w.latest(covered.ID).PaidOutOfBand}, []any{stripetest.Active, true})
}
