package stripetest_test

import (
	"testing"
	"time"

	"github.com/headroomhq/headroom/webhooks/stripetest"
)

func TestProrationsWaitForTheNextInvoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	half := monthLater().Sub(start()) / 2
	w.Advance(half)
	n := w.count()
	w.update(sub.ID, stripetest.UpdateParams{Price: w.large})
	same(t, "events", w.since(n), []string{"customer.subscription.updated"})
	w.Advance(half + 2*time.Hour)
	inv := w.latest(sub.ID)
	var amounts []int64
	for _, l := range inv.Lines {
		amounts = append(amounts, l.Amount)
	}
	same(t, "credit first", amounts, []int64{-1250, 2500, 5000})
	truth := w.truth(sub.ID)
	same(t, "plan at the end of the first", truth.Periods[0].Plan.Price.ID, w.large)
	same(t, "paid", truth.Periods[1].Payment, stripetest.PeriodPaid)
}

func TestDowngradeCreditsTheCustomer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{Price: w.large})
	w.Advance(monthLater().Sub(start()) / 2)
	w.update(sub.ID, stripetest.UpdateParams{Price: w.monthly, Proration: stripetest.AlwaysInvoice})
	inv := w.latest(sub.ID)
	same(t, "invoice", []any{inv.Total, inv.AmountDue, inv.Status}, []any{int64(-1250), int64(0), stripetest.InvoicePaid})
	same(t, "balance", must(w.Customer(w.customer)).Balance, int64(-1250))
}

func TestAnchorResetWithoutPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	w.ok(w.SetPayment(w.customer, stripetest.PaymentDeclines))
	w.Advance(5 * day)
	reset := stripetest.UpdateParams{AnchorNow: true, PaymentBehavior: stripetest.ErrorIfIncomplete}
	if _, err := w.Update(sub.ID, reset); err == nil {
		t.Error("error_if_incomplete changed the subscription")
	}
	same(t, "untouched", w.now(sub.ID).Items[0].Start, start())
	reset.PaymentBehavior = stripetest.AllowIncomplete
	sub = w.update(sub.ID, reset)
	same(t, "status", sub.Status, stripetest.PastDue)
	truth := w.truth(sub.ID)
	same(t, "kind", truth.Periods[1].Kind, stripetest.KindAnchorReset)
	same(t, "payment", truth.Periods[1].Payment, stripetest.PeriodFailed)
	same(t, "old period", truth.Periods[0].Closed, start().Add(5*day))
}

func pending(w *world) stripetest.Subscription {
	sub := w.subscribe(stripetest.SubscribeParams{})
	w.ok(w.SetPayment(w.customer, stripetest.PaymentDeclines))
	w.Advance(5 * day)
	return w.update(sub.ID, stripetest.UpdateParams{
		Price: w.large, Proration: stripetest.AlwaysInvoice, PaymentBehavior: stripetest.PendingIfIncomplete,
	})
}

func TestPendingUpdateKeepsTheOldItemsUntilItIsPaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := pending(w)
	same(t, "price", sub.Items[0].Price.ID, w.monthly)
	same(t, "status", sub.Status, stripetest.Active)
	object := dig(w.last("customer.subscription.updated", stripetest.V20240620), "data", "object")
	same(t, "pending", dig(object, "pending_update", "subscription_items", 0, "price", "id"), any(w.large))
	same(t, "expires", dig(object, "pending_update", "expires_at"), any(float64(start().Add(5*day+23*time.Hour).Unix())))

	w.ok(w.SetPayment(w.customer, stripetest.PaymentSucceeds))
	n := w.count()
	w.ok(w.PayInvoice(sub.PendingUpdate.Invoice))
	same(t, "events", w.since(n), []string{
		"invoice.paid", "customer.subscription.pending_update_applied", "customer.subscription.updated",
	})
	sub = w.now(sub.ID)
	same(t, "applied", []any{sub.Items[0].Price.ID, sub.Items[0].Start}, []any{w.large, start()})
}

func TestPendingUpdateExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := pending(w)
	n := w.count()
	w.Advance(23 * time.Hour)
	same(t, "events", w.since(n), []string{
		"invoice.voided", "customer.subscription.pending_update_expired", "customer.subscription.updated",
	})
	sub = w.now(sub.ID)
	same(t, "price", []any{sub.Items[0].Price.ID, sub.PendingUpdate}, []any{w.monthly, (*stripetest.PendingUpdate)(nil)})
	same(t, "status", sub.Status, stripetest.Active)
}

func TestPendingAnchorResetGivesWayToTheCycle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	w.AdvanceTo(monthLater().Add(-time.Hour))
	w.ok(w.SetPayment(w.customer, stripetest.PaymentDeclines))
	sub = w.update(sub.ID, stripetest.UpdateParams{
		Price: w.large, AnchorNow: true, PaymentBehavior: stripetest.PendingIfIncomplete,
	})
	same(t, "anchor that waits", sub.PendingUpdate.Anchor, monthLater().Add(-time.Hour))
	n := w.count()
	w.Advance(90 * time.Minute)
	same(t, "events", w.since(n), []string{
		"invoice.voided", "customer.subscription.pending_update_expired", "customer.subscription.updated",
		"invoice.created", "customer.subscription.updated",
	})
	sub = w.now(sub.ID)
	same(t, "cycle", []any{sub.Items[0].Start, sub.Items[0].Price.ID}, []any{monthLater(), w.monthly})
}

func TestPendingPriceIsAppliedToTheRenewedPeriod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	w.AdvanceTo(monthLater().Add(-time.Hour))
	w.ok(w.SetPayment(w.customer, stripetest.PaymentDeclines))
	sub = w.update(sub.ID, stripetest.UpdateParams{
		Price: w.large, Proration: stripetest.AlwaysInvoice, PaymentBehavior: stripetest.PendingIfIncomplete,
	})
	w.Advance(90 * time.Minute)
	same(t, "old price is billed", w.latest(sub.ID).Total, int64(2500))
	w.ok(w.SetPayment(w.customer, stripetest.PaymentSucceeds))
	w.ok(w.PayInvoice(sub.PendingUpdate.Invoice))
	sub = w.now(sub.ID)
	same(t, "applied", []any{sub.Items[0].Start, sub.Items[0].Price.ID}, []any{monthLater(), w.large})
}

func TestRefusedUpdatesChangeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	w.Advance(day)
	past, yes, n := start(), true, w.count()
	for name, p := range map[string]stripetest.UpdateParams{
		"end in the past":  {CancelAt: &past},
		"unknown price":    {Price: "price_none"},
		"unknown item":     {Items: []stripetest.ItemChange{{ID: "si_none", Quantity: 2}}},
		"mixed in classic": {Items: []stripetest.ItemChange{{Price: w.yearly}}},
		"pending end":      {CancelAtPeriodEnd: &yes, PaymentBehavior: stripetest.PendingIfIncomplete},
	} {
		if _, err := w.Update(sub.ID, p); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	same(t, "events", w.count(), n)
	same(t, "price", w.now(sub.ID).Items[0].Price.ID, w.monthly)
}

func TestAnotherItemCanBecomeThePlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{BillingMode: stripetest.Flexible})
	sub := w.subscribe(stripetest.SubscribeParams{})
	w.Advance(10 * day)
	w.update(sub.ID, stripetest.UpdateParams{Items: []stripetest.ItemChange{{Price: w.yearly}}})
	truth, err := w.Truth(sub.ID, func(price string) int { return map[string]int{w.yearly: 2, w.monthly: 1}[price] })
	w.ok(err)
	same(t, "period", []any{len(truth.Periods), truth.Periods[1].Kind, truth.Periods[1].Start},
		[]any{2, stripetest.KindPlanChange, start().Add(10 * day)})
}

func TestMixedIntervalsEachHaveTheirPeriod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	items := []stripetest.ItemParams{{Price: w.yearly}, {Price: w.monthly, Quantity: 3}}
	if _, err := w.Subscribe(stripetest.SubscribeParams{Customer: w.customer, Items: items}); err == nil {
		t.Error("classic mode took two intervals")
	}
	sub := w.subscribe(stripetest.SubscribeParams{Items: items, BillingMode: stripetest.Flexible})
	w.Advance(35 * day)
	object := dig(w.last("customer.subscription.updated", stripetest.V20240620), "data", "object")
	same(t, "smallest on top", []any{dig(object, "current_period_start"), dig(object, "current_period_end")},
		[]any{float64(monthLater().Unix()), float64(monthLater().AddDate(0, 1, 0).Unix())})
	object = dig(w.last("customer.subscription.updated", stripetest.Clover), "data", "object")
	same(t, "year", dig(object, "items", "data", 0, "current_period_start"), any(float64(start().Unix())))
	same(t, "month", dig(object, "items", "data", 1, "current_period_start"), any(float64(monthLater().Unix())))

	years, err := w.Truth(sub.ID, func(price string) int { return map[string]int{w.yearly: 2, w.monthly: 1}[price] })
	w.ok(err)
	months, err := w.Truth(sub.ID, func(price string) int { return map[string]int{w.yearly: 1, w.monthly: 2}[price] })
	w.ok(err)
	same(t, "periods", []int{len(years.Periods), len(months.Periods)}, []int{1, 2})
	same(t, "quantity", months.Periods[1].Plan.Quantity, int64(3))
	same(t, "lines of the renewal", len(w.latest(sub.ID).Lines), 1)
	w.AdvanceTo(yearLater().Add(2 * time.Hour))
	same(t, "lines of the year's end", len(w.latest(sub.ID).Lines), 2)
}

func TestItemsAreAddedAndRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	w.Advance(10 * day)
	sub = w.update(sub.ID, stripetest.UpdateParams{Items: []stripetest.ItemChange{{Price: w.large, Quantity: 2}}})
	same(t, "period of the new item", sub.Items[1].Start, start())
	first := sub.Items[0].ID
	sub = w.update(sub.ID, stripetest.UpdateParams{Items: []stripetest.ItemChange{{ID: first, Remove: true}}})
	same(t, "left", []any{len(sub.Items), sub.Items[0].Price.ID, sub.Items[0].Quantity}, []any{1, w.large, int64(2)})
	if _, err := w.Update(sub.ID, stripetest.UpdateParams{
		Items: []stripetest.ItemChange{{ID: sub.Items[0].ID, Remove: true}},
	}); err == nil {
		t.Error("the last item was removed")
	}
}

func TestScheduleChangesThePriceAtThePeriodsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	n := w.count()
	c := must(w.SchedulePrice(sub.ID, w.large))
	same(t, "made", w.since(n), []string{"subscription_schedule.created", "customer.subscription.updated"})
	same(t, "attached", w.now(sub.ID).Schedule, c.ID)
	n = w.count()
	w.AdvanceTo(monthLater().Add(time.Minute))
	same(t, "phase", w.since(n), []string{
		"subscription_schedule.updated", "invoice.created", "customer.subscription.updated",
		"subscription_schedule.updated", "subscription_schedule.released", "customer.subscription.updated",
	})
	sub = w.now(sub.ID)
	same(t, "after", []any{sub.Items[0].Price.ID, sub.Schedule, w.latest(sub.ID).Total}, []any{w.large, "", int64(5000)})

	must(w.SchedulePrice(sub.ID, w.monthly))
	w.ok(w.ReleaseSchedule(sub.ID))
	w.Advance(32 * day)
	same(t, "released before", w.now(sub.ID).Items[0].Price.ID, w.large)
	must(w.SchedulePrice(sub.ID, w.monthly))
	n = w.count()
	must(w.Cancel(sub.ID))
	same(t, "canceled", w.since(n), []string{"subscription_schedule.canceled", "customer.subscription.deleted"})
}

func TestMetadataAndArchivedPrices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{Metadata: map[string]string{"workspace_id": "a", "old": "x"}})
	sub = w.update(sub.ID, stripetest.UpdateParams{Metadata: map[string]string{"workspace_id": "b", "old": ""}})
	same(t, "metadata", sub.Metadata, map[string]string{"workspace_id": "b"})
	previous := dig(w.last("customer.subscription.updated", stripetest.Basil), "data", "previous_attributes")
	same(t, "previous", previous, any(map[string]any{"metadata": map[string]any{"workspace_id": "a", "old": "x"}}))
	w.ok(w.ArchivePrice(w.monthly))
	w.Advance(32 * day)
	same(t, "still billed", w.truth(sub.ID).Periods[1].Payment, stripetest.PeriodPaid)
	if _, err := w.Subscribe(stripetest.SubscribeParams{Customer: w.customer, Price: w.monthly}); err == nil {
		t.Error("an archived price was sold")
	}
}
