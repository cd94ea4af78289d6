package stripetest_test

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/headroomhq/headroom/webhooks/stripetest"
)

func TestSameSeedSameBytes(t *testing.T) {
	t.Parallel()
	play := func(seed uint64) []byte {
		w := newWorld(t, stripetest.Options{Seed: seed})
		scenario(w)
		var out bytes.Buffer
		for _, e := range w.Events() {
			out.Write(e.Body(stripetest.Basil))
		}
		return out.Bytes()
	}
	same(t, "same seed", bytes.Equal(play(1), play(1)), true)
	same(t, "other seed", bytes.Equal(play(1), play(2)), false)
}

func TestOneStepOrManyEndTheSame(t *testing.T) {
	t.Parallel()
	play := func(advance func(*world, time.Time)) []string {
		w := newWorld(t, stripetest.Options{AfterDunning: stripetest.DunningUnpaid})
		w.subscribe(stripetest.SubscribeParams{Trial: 10 * day})
		w.subscribe(stripetest.SubscribeParams{Price: w.yearly})
		w.ok(w.SetPayment(w.customer, stripetest.PaymentDeclines))
		advance(w, start().AddDate(0, 7, 0))
		var out []string
		for _, e := range w.Events() {
			out = append(out, string(e.Body(stripetest.Clover)))
		}
		return out
	}
	once := play(func(w *world, to time.Time) { w.AdvanceTo(to) })
	steps := play(func(w *world, to time.Time) {
		for {
			due, ok := w.NextDue()
			if !ok || due.After(to) {
				w.AdvanceTo(to)
				return
			}
			w.AdvanceTo(due)
		}
	})
	same(t, "events", steps, once)
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, stripetest.Options{})
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			c := s.CreateCustomer(stripetest.CustomerParams{})
			for range 4 {
				sub := must(s.Subscribe(stripetest.SubscribeParams{Customer: c.ID, Price: s.monthly}))
				must(s.Update(sub.ID, stripetest.UpdateParams{Price: s.large}))
				s.Advance(day)
				s.ask("/v1/subscriptions?status=all&limit=100")
				must(s.Truth(sub.ID, nil))
				for _, e := range s.EventsFrom(s.count() - 20) {
					e.Body(stripetest.Basil)
				}
				must(s.Cancel(sub.ID))
			}
		})
	}
	group.Wait()
	same(t, "subscriptions", len(s.Subscriptions()), 24)
	same(t, "clock", s.Now(), start().Add(24*day))
	seen := map[string]bool{}
	for _, e := range s.Events() {
		seen[e.ID] = true
	}
	same(t, "ids", len(seen), s.count())
}

func TestMutedChangesHaveNoEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	sub := w.subscribe(stripetest.SubscribeParams{})
	n := w.count()
	w.Mute(true)
	w.update(sub.ID, stripetest.UpdateParams{Price: w.large})
	w.Mute(false)
	same(t, "events", w.count(), n)
	same(t, "truth", w.truth(sub.ID).Periods[0].Plan.Price.ID, w.large)
}

func TestForeignEventIsSentAsGiven(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	e := w.Emit(stripetest.Foreign{
		Type: "entitlements.active_entitlement_summary.updated", Account: "acct_1",
		Object: map[string]any{"object": "entitlements.active_entitlement_summary", "customer": w.customer},
	})
	body := parse(t, e.Body(stripetest.Basil))
	same(t, "event", []any{body["type"], body["account"], dig(body, "data", "object", "customer"), dig(body, "data", "object", "id")},
		[]any{"entitlements.active_entitlement_summary.updated", "acct_1", w.customer, nil})
}

func TestResubscriptionIsANewSubscription(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	old := w.subscribe(stripetest.SubscribeParams{})
	yes := true
	w.update(old.ID, stripetest.UpdateParams{CancelAtPeriodEnd: &yes})
	w.Advance(20 * day)
	fresh := w.subscribe(stripetest.SubscribeParams{})
	w.Advance(20 * day)
	same(t, "statuses", []stripetest.Status{w.now(old.ID).Status, w.now(fresh.ID).Status},
		[]stripetest.Status{stripetest.Canceled, stripetest.Active})
	truth := w.truth(fresh.ID)
	same(t, "periods", []any{len(truth.Periods), truth.Periods[0].Start}, []any{1, start().Add(20 * day)})
}
