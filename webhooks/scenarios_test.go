package webhooks_test

import (
	"time"

	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// scenario is a life of a customer at Stripe.
type scenario struct {
	name string
	play func(*stream)
	// needsAPI marks what payloads do not tell at every version.
	needsAPI bool
	live     bool
	dunning  stripetest.DunningEnd
}

func (st *stream) begin(p stripetest.SubscribeParams) string {
	st.Helper()
	sub := st.subscribe(p)
	st.flow(false)
	return sub.ID
}

func (st *stream) then(id string, p stripetest.UpdateParams) {
	st.Helper()
	st.update(id, p)
	st.flow(false)
}

func (st *stream) latest(id string) string {
	st.Helper()
	sub, err := st.Subscription(id)
	st.ok(err)
	return sub.LatestInvoice
}

func scenarios() []scenario {
	yes, no := true, false
	return append(rareScenarios(), []scenario{
		{name: "renewals", play: func(st *stream) {
			st.begin(stripetest.SubscribeParams{})
			for range 3 {
				st.tick(16 * aDay)
			}
		}},
		{name: "the draft hour", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{})
			sub, err := st.Subscription(id)
			st.ok(err)
			st.tick(sub.Items[0].End.Add(20 * time.Second).Sub(st.today()))
		}},
		{name: "trial, then paid", play: func(st *stream) {
			st.begin(stripetest.SubscribeParams{Trial: 9 * aDay})
			st.tick(7 * aDay)
			st.tick(40 * aDay)
		}},
		{name: "trial that ends at once, then another plan", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{Trial: 2 * aDay, Price: "price_basic"})
			st.update(id, stripetest.UpdateParams{Price: "price_max"})
			st.then(id, stripetest.UpdateParams{EndTrial: true})
		}},
		{name: "trial without a method, resumed", play: func(st *stream) {
			st.pay(stripetest.PaymentMethodMissing)
			id := st.begin(stripetest.SubscribeParams{Trial: 9 * aDay, TrialMissing: stripetest.MissingPauses})
			st.tick(12 * aDay)
			st.pay(stripetest.PaymentSucceeds)
			_, err := st.Resume(id)
			st.ok(err)
			st.flow(false)
		}},
		{name: "many changes in one second", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{Price: "price_basic"})
			for _, price := range []string{"price_max", "price_pro", "price_max", "price_basic"} {
				st.update(id, stripetest.UpdateParams{Price: price})
			}
			st.update(id, stripetest.UpdateParams{Quantity: int64(2 + st.random.IntN(5))})
			st.then(id, stripetest.UpdateParams{Price: []string{"price_max", "price_pro"}[st.random.IntN(2)]})
		}},
		{name: "upgrade, then downgrade by schedule", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{})
			st.tick(3 * aDay)
			st.then(id, stripetest.UpdateParams{Price: "price_max", Proration: stripetest.AlwaysInvoice})
			_, err := st.SchedulePrice(id, "price_basic")
			st.ok(err)
			st.tick(40 * aDay)
		}},
		{name: "anchor reset", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{})
			st.tick(3 * aDay)
			st.then(id, stripetest.UpdateParams{AnchorNow: true})
			st.tick(40 * aDay)
		}},
		{name: "classic to a year", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{})
			st.tick(40 * aDay)
			st.then(id, stripetest.UpdateParams{Price: "price_pro_year"})
		}},
		{name: "flexible to a year and back", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{BillingMode: stripetest.Flexible})
			st.tick(3 * aDay)
			st.then(id, stripetest.UpdateParams{Price: "price_pro_year", Proration: stripetest.AlwaysInvoice})
			st.tick(40 * aDay)
			st.then(id, stripetest.UpdateParams{Price: "price_basic", AnchorNow: true})
		}},
		{name: "collection paused and resumed", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{})
			st.then(id, stripetest.UpdateParams{PauseCollection: &stripetest.PauseCollection{Behavior: "void"}})
			st.tick(40 * aDay)
			st.then(id, stripetest.UpdateParams{ResumeCollection: true})
			st.tick(30 * aDay)
		}},
		{name: "payment fails and recovers", live: false, play: func(st *stream) {
			st.begin(stripetest.SubscribeParams{})
			st.pay(stripetest.PaymentDeclines)
			st.tick(29 * aDay)
			st.pay(stripetest.PaymentSucceeds)
			st.tick(10 * aDay)
		}},
		{name: "payment fails for good", play: func(st *stream) {
			st.begin(stripetest.SubscribeParams{})
			st.pay(stripetest.PaymentDeclines)
			st.tick(40 * aDay)
			st.tick(20 * aDay)
		}},
		{name: "unpaid, and paid at last", dunning: stripetest.DunningUnpaid, play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{})
			st.pay(stripetest.PaymentDeclines)
			st.tick(50 * aDay)
			st.tick(20 * aDay)
			if st.random.IntN(2) == 0 {
				st.pay(stripetest.PaymentSucceeds)
				st.ok(st.PayInvoice(st.latest(id)))
				st.flow(false)
			}
		}},
		{name: "set to end, and ended", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{})
			st.then(id, stripetest.UpdateParams{CancelAtPeriodEnd: &yes})
			st.tick(40 * aDay)
		}},
		{name: "set to end, and taken back", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{BillingMode: stripetest.Flexible})
			at := st.today().Add(20 * aDay)
			st.then(id, stripetest.UpdateParams{CancelAt: &at})
			st.then(id, stripetest.UpdateParams{CancelAtPeriodEnd: &no})
			st.tick(40 * aDay)
		}},
		{name: "ended, and subscribed again", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{})
			st.tick(10 * aDay)
			_, err := st.Cancel(id)
			st.ok(err)
			st.begin(stripetest.SubscribeParams{Price: "price_basic"})
			st.tick(35 * aDay)
		}},
		{name: "subscribed again before the old one ends", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{})
			st.then(id, stripetest.UpdateParams{CancelAtPeriodEnd: &yes})
			st.tick(20 * aDay)
			st.begin(stripetest.SubscribeParams{})
			st.tick(20 * aDay)
		}},
		{name: "two live ones", play: func(st *stream) {
			st.begin(stripetest.SubscribeParams{Price: "price_basic"})
			st.tick(aDay)
			id := st.begin(stripetest.SubscribeParams{Price: "price_basic"})
			st.tick(20 * aDay)
			st.then(id, stripetest.UpdateParams{Price: "price_max"})
			st.tick(20 * aDay)
		}},
		{name: "several items", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{Items: []stripetest.ItemParams{{Price: "price_addon"}, {Price: "price_basic", Quantity: 2}}})
			st.then(id, stripetest.UpdateParams{Items: []stripetest.ItemChange{{Price: "price_max", Quantity: 3}}})
			st.tick(40 * aDay)
		}},
		{name: "items of several intervals", needsAPI: true, play: func(st *stream) {
			st.begin(stripetest.SubscribeParams{BillingMode: stripetest.Flexible, Items: []stripetest.ItemParams{{Price: "price_addon"}, {Price: "price_pro_year"}}})
			st.tick(40 * aDay)
			st.tick(40 * aDay)
		}},
		{name: "a price that is not in the catalog", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{})
			st.settle()
			st.tick(10 * aDay)
			st.then(id, stripetest.UpdateParams{Price: "price_addon"})
			st.tick(40 * aDay)
			st.then(id, stripetest.UpdateParams{Price: "price_max"})
		}},
		{name: "a pending update", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{})
			st.pay(stripetest.PaymentDeclines)
			sub, err := st.Update(id, stripetest.UpdateParams{Price: "price_max", Proration: stripetest.AlwaysInvoice, PaymentBehavior: stripetest.PendingIfIncomplete})
			st.ok(err)
			st.flow(false)
			if st.random.IntN(2) == 0 {
				st.pay(stripetest.PaymentSucceeds)
				st.ok(st.PayInvoice(sub.PendingUpdate.Invoice))
			}
			st.tick(3 * aDay)
		}},
		{name: "incomplete, then paid or expired", play: func(st *stream) {
			st.pay(stripetest.PaymentNeedsAction)
			id := st.begin(stripetest.SubscribeParams{})
			if st.random.IntN(2) == 0 {
				st.pay(stripetest.PaymentSucceeds)
				st.ok(st.PayInvoice(st.latest(id)))
			}
			st.tick(2 * aDay)
		}},
		{name: "the customer is deleted", play: func(st *stream) {
			st.begin(stripetest.SubscribeParams{})
			st.tick(40 * aDay)
			st.ok(st.DeleteCustomer(st.customer))
			st.flow(false)
		}},
		{name: "a late payment after the end", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{})
			st.pay(stripetest.PaymentDeclines)
			st.tick(30 * aDay)
			_, err := st.Cancel(id)
			st.ok(err)
			st.tick(aDay)
			st.ok(st.PayInvoiceOutOfBand(st.latest(id)))
			st.flow(false)
		}},
		{name: "a checkout says whose it is", play: func(st *stream) {
			_, err := st.Checkout(stripetest.CheckoutParams{ClientReferenceID: st.workspace, Subscribe: stripetest.SubscribeParams{
				Customer: st.customer, Price: "price_pro",
			}})
			st.ok(err)
			st.flow(false)
			st.tick(40 * aDay)
		}},
		{name: "refund and dispute", needsAPI: true, play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{})
			_, err := st.Refund(st.latest(id), 500)
			st.ok(err)
			dispute, err := st.OpenDispute(st.latest(id), st.random.IntN(2) == 0)
			st.ok(err)
			st.tick(3 * aDay)
			st.ok(st.CloseDispute(dispute.ID, st.random.IntN(2) == 0))
			st.tick(aDay)
		}},
	}...)
}
