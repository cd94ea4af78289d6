package stripetest_test

import (
	"testing"
	"time"

	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// line is what was recorded of an invoice's line.
type line struct {
	Amount     int64
	Start, End time.Time
	Proration  bool
}

// evidence is what was recorded of a subscription after a change.
type evidence struct {
	Start, End, Anchor time.Time
	Status             stripetest.Status
	Reason             stripetest.Reason
	Paid               stripetest.InvoiceStatus
	Total              int64
	Lines              []line
}

func (w *world) evidence(id string) evidence {
	w.t.Helper()
	sub, inv := w.now(id), w.latest(id)
	e := evidence{
		Start: sub.Items[0].Start, End: sub.Items[0].End, Anchor: sub.Anchor, Status: sub.Status,
		Reason: inv.Reason, Paid: inv.Status, Total: inv.Total,
	}
	for _, l := range inv.Lines {
		e.Lines = append(e.Lines, line{l.Amount, l.Start, l.End, l.Proration})
	}
	return e
}

func created() evidence {
	return evidence{
		Start: start(), End: monthLater(), Anchor: start(), Status: stripetest.Active, Reason: stripetest.ReasonCreate,
		Paid: stripetest.InvoicePaid, Total: 2500, Lines: []line{{2500, start(), monthLater(), false}},
	}
}

// TestRecordedEvidence holds what recorded traffic of the real API shows.
func TestRecordedEvidence(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return start().Add(time.Duration(s) * time.Second) }
	cases := []struct {
		name string
		mode stripetest.BillingMode
		make stripetest.SubscribeParams
		// payment is the customer's.
		payment stripetest.Payment
		after   time.Duration
		change  *stripetest.UpdateParams
		want    func() evidence
	}{
		{name: "create monthly", want: created},
		{
			name: "swap to annual without anchor leaves start and anchor", mode: stripetest.Flexible, after: 4 * time.Second,
			change: &stripetest.UpdateParams{Price: "price_yearly", Proration: stripetest.AlwaysInvoice},
			want: func() evidence {
				e := created()
				e.End, e.Reason, e.Total = yearLater(), stripetest.ReasonUpdate, 22500
				e.Lines = []line{{-2500, at(4), monthLater(), true}, {25000, at(4), yearLater(), true}}
				return e
			},
		},
		{
			name: "swap to annual with anchor now begins a period", mode: stripetest.Flexible, after: 3 * time.Second,
			change: &stripetest.UpdateParams{Price: "price_yearly", AnchorNow: true},
			want: func() evidence {
				end := at(3).AddDate(1, 0, 0)
				return evidence{
					Start: at(3), End: end, Anchor: at(3), Status: stripetest.Active, Reason: stripetest.ReasonUpdate,
					Paid: stripetest.InvoicePaid, Total: 22500,
					Lines: []line{{-2500, at(3), monthLater(), true}, {25000, at(3), end, false}},
				}
			},
		},
		{
			name: "classic mode restarts the cycle when the interval changes", mode: stripetest.Classic, after: 3 * time.Second,
			change: &stripetest.UpdateParams{Price: "price_yearly"},
			want: func() evidence {
				end := at(3).AddDate(1, 0, 0)
				return evidence{
					Start: at(3), End: end, Anchor: at(3), Status: stripetest.Active, Reason: stripetest.ReasonUpdate,
					Paid: stripetest.InvoicePaid, Total: 22500,
					Lines: []line{{-2500, at(3), monthLater(), true}, {25000, at(3), end, false}},
				}
			},
		},
		{
			name: "quantity makes no invoice", after: time.Hour, change: &stripetest.UpdateParams{Quantity: 5}, want: created,
		},
		{
			name: "trial", make: stripetest.SubscribeParams{Trial: 15 * day},
			want: func() evidence {
				end := start().Add(15 * day)
				return evidence{
					Start: start(), End: end, Anchor: end, Status: stripetest.Trialing, Reason: stripetest.ReasonCreate,
					Paid: stripetest.InvoicePaid, Lines: []line{{0, start(), end, false}},
				}
			},
		},
		{
			name: "card needs authentication", payment: stripetest.PaymentNeedsAction,
			want: func() evidence {
				e := created()
				e.Status, e.Paid = stripetest.Incomplete, stripetest.InvoiceOpen
				return e
			},
		},
		{
			name: "pause_collection", after: time.Hour,
			change: &stripetest.UpdateParams{PauseCollection: &stripetest.PauseCollection{Behavior: "void"}}, want: created,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Options{BillingMode: c.mode})
			if c.payment != "" {
				w.ok(w.SetPayment(w.customer, c.payment))
			}
			sub := w.subscribe(c.make)
			w.Advance(c.after)
			if c.change != nil {
				w.update(sub.ID, *c.change)
			}
			same(t, "evidence", w.evidence(sub.ID), c.want())
		})
	}
}

func TestScheduledEndIsSetAndUndone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	w.Advance(time.Hour)
	yes, no := true, false
	sub = w.update(sub.ID, stripetest.UpdateParams{CancelAtPeriodEnd: &yes})
	same(t, "cancel_at", sub.CancelAt, monthLater())
	same(t, "canceled_at", sub.CanceledAt, start().Add(time.Hour))
	same(t, "status", sub.Status, stripetest.Active)
	sub = w.update(sub.ID, stripetest.UpdateParams{CancelAtPeriodEnd: &no})
	same(t, "undone", []time.Time{sub.CancelAt, sub.CanceledAt}, []time.Time{{}, {}})
	same(t, "end", sub.Items[0].End, monthLater())

	end := start().Add(10 * day)
	sub = w.update(sub.ID, stripetest.UpdateParams{CancelAt: &end})
	same(t, "boolean of the portal's way", sub.CancelAtPeriodEnd, false)
	w.Advance(20 * day)
	sub = w.now(sub.ID)
	same(t, "ended", []any{sub.Status, sub.EndedAt}, []any{stripetest.Canceled, end})
}

func TestScheduledEndComesInsteadOfARenewal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	yes := true
	w.update(sub.ID, stripetest.UpdateParams{CancelAtPeriodEnd: &yes})
	n := w.count()
	w.Advance(40 * day)
	same(t, "events", w.since(n), []string{"customer.subscription.deleted"})
	truth := w.truth(sub.ID)
	same(t, "periods", len(truth.Periods), 1)
	same(t, "closed", truth.Periods[0].Closed, monthLater())
}

func TestCancelNowKeepsTheFutureEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	w.Advance(3 * day)
	sub, err := w.Cancel(sub.ID)
	w.ok(err)
	same(t, "end", sub.Items[0].End, monthLater())
	same(t, "ended_at", sub.EndedAt, start().Add(3*day))
	same(t, "cancel_at", sub.CancelAt, time.Time{})
	object := dig(w.last("customer.subscription.deleted", stripetest.V20240620), "data", "object")
	same(t, "current_period_end", dig(object, "current_period_end"), any(float64(monthLater().Unix())))
	if _, err := w.Update(sub.ID, stripetest.UpdateParams{Quantity: 2}); err == nil {
		t.Error("a canceled subscription was changed")
	}
}

func TestPauseCollectionLeavesStatusAndPeriodsAlone(t *testing.T) {
	t.Parallel()
	for behavior, want := range map[string]string{
		"void": stripetest.PeriodVoid, "mark_uncollectible": stripetest.PeriodFailed, "keep_as_draft": stripetest.PeriodPending,
	} {
		t.Run(behavior, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Options{})
			sub := w.subscribe(stripetest.SubscribeParams{})
			w.update(sub.ID, stripetest.UpdateParams{PauseCollection: &stripetest.PauseCollection{
				Behavior: behavior, ResumesAt: monthLater().Add(10 * day),
			}})
			w.Advance(35 * day)
			truth := w.truth(sub.ID)
			same(t, "status", truth.Subscription.Status, stripetest.Active)
			same(t, "periods", len(truth.Periods), 2)
			same(t, "payment", truth.Periods[1].Payment, want)
			w.Advance(31 * day)
			truth = w.truth(sub.ID)
			same(t, "pause", truth.Subscription.PauseCollection, (*stripetest.PauseCollection)(nil))
			same(t, "payment after it", truth.Periods[2].Payment, stripetest.PeriodPaid)
		})
	}
}
