package stripetest_test

import (
	"testing"
	"time"

	"github.com/headroomhq/headroom/webhooks/stripetest"
)

func TestTrialEndBeginsThePaidPeriod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	n := w.count()
	sub := w.subscribe(stripetest.SubscribeParams{Trial: 14 * day})
	end := start().Add(14 * day)
	same(t, "made", w.since(n), []string{"invoice.created", "invoice.finalized", "invoice.paid", "customer.subscription.created"})
	n = w.count()
	w.Advance(11 * day)
	same(t, "notice", w.since(n), []string{"customer.subscription.trial_will_end"})
	n = w.count()
	w.Advance(4 * day)
	same(t, "end", w.since(n), []string{
		"invoice.created", "customer.subscription.updated", "invoice.finalized", "invoice.paid",
	})
	truth := w.truth(sub.ID)
	same(t, "status", truth.Subscription.Status, stripetest.Active)
	same(t, "kinds", []string{truth.Periods[0].Kind, truth.Periods[1].Kind}, []string{stripetest.KindCreated, stripetest.KindTrialEnd})
	same(t, "period", []time.Time{truth.Periods[1].Start, truth.Periods[1].End}, []time.Time{end, end.AddDate(0, 1, 0)})
	same(t, "status then", truth.Periods[0].Status, stripetest.Trialing)
	same(t, "payment", truth.Periods[1].Payment, stripetest.PeriodPaid)
}

func TestShortTrialIsAnnouncedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	n := w.count()
	w.subscribe(stripetest.SubscribeParams{Trial: 2 * day})
	types := w.since(n)
	same(t, "last", types[len(types)-1], "customer.subscription.trial_will_end")
}

func TestTrialEndedNowSharesItsSecondWithTheNotice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{Trial: 14 * day})
	w.Advance(day)
	n := w.count()
	sub = w.update(sub.ID, stripetest.UpdateParams{EndTrial: true, Price: w.large})
	same(t, "events", w.since(n), []string{
		"invoice.created", "invoice.finalized", "customer.subscription.trial_will_end", "customer.subscription.updated", "invoice.paid",
	})
	same(t, "start", sub.Items[0].Start, start().Add(day))
	same(t, "anchor", sub.Anchor, start().Add(day))
	truth := w.truth(sub.ID)
	same(t, "kind", truth.Periods[1].Kind, stripetest.KindTrialEnd)
	same(t, "payment", truth.Periods[1].Payment, stripetest.PeriodPaid)
}

func TestTrialWithoutPaymentMethod(t *testing.T) {
	t.Parallel()
	for missing, want := range map[stripetest.MissingMethod]stripetest.Status{
		stripetest.MissingPauses: stripetest.Paused, stripetest.MissingCancels: stripetest.Canceled,
		stripetest.MissingInvoices: stripetest.PastDue,
	} {
		t.Run(string(missing), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Options{})
			w.ok(w.SetPayment(w.customer, stripetest.PaymentMethodMissing))
			sub := w.subscribe(stripetest.SubscribeParams{Trial: 14 * day, TrialMissing: missing})
			w.Advance(15 * day)
			same(t, "status", w.now(sub.ID).Status, want)
		})
	}
}

func TestPausedTrialResumesNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	w.ok(w.SetPayment(w.customer, stripetest.PaymentMethodMissing))
	sub := w.subscribe(stripetest.SubscribeParams{Trial: 14 * day, TrialMissing: stripetest.MissingPauses})
	n := w.count()
	w.Advance(90 * day)
	same(t, "no invoices", w.since(n), []string{
		"customer.subscription.trial_will_end", "customer.subscription.paused", "customer.subscription.updated",
	})
	same(t, "periods", len(w.truth(sub.ID).Periods), 1)
	w.ok(w.SetPayment(w.customer, stripetest.PaymentSucceeds))
	n = w.count()
	sub = must(w.Resume(sub.ID))
	same(t, "resumed", w.since(n), []string{
		"invoice.created", "invoice.finalized", "customer.subscription.resumed", "customer.subscription.updated", "invoice.paid",
	})
	same(t, "anchor", sub.Anchor, start().Add(90*day))
	truth := w.truth(sub.ID)
	same(t, "kind", truth.Periods[1].Kind, stripetest.KindResume)
	same(t, "start", truth.Periods[1].Start, start().Add(90*day))
	same(t, "status", truth.Subscription.Status, stripetest.Active)
	w.Advance(32 * day)
	same(t, "goes on", len(w.truth(sub.ID).Periods), 3)
}

func TestResumeWithoutMoneyIsPastDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{BillingMode: stripetest.Flexible})
	sub := w.subscribe(stripetest.SubscribeParams{})
	must(w.Pause(sub.ID))
	w.ok(w.SetPayment(w.customer, stripetest.PaymentDeclines))
	sub = must(w.Resume(sub.ID))
	same(t, "status", sub.Status, stripetest.PastDue)
}

func TestPauseOfTheNewKindTellsItsReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	classic := w.subscribe(stripetest.SubscribeParams{})
	if _, err := w.Pause(classic.ID); err == nil {
		t.Error("a classic subscription was paused")
	}
	flexible := w.subscribe(stripetest.SubscribeParams{BillingMode: stripetest.Flexible})
	must(w.Pause(flexible.ID))
	object := dig(w.last("customer.subscription.paused", stripetest.Endive), "data", "object")
	same(t, "reason", dig(object, "status_details", "paused", "type"), any("requested"))
	end := start().Add(10 * day)
	w.update(flexible.ID, stripetest.UpdateParams{CancelAt: &end})
	w.Advance(40 * day)
	same(t, "scheduled end", w.now(flexible.ID).Status, stripetest.Canceled)
}
