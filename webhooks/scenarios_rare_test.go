package webhooks_test

import "github.com/headroomhq/headroom/webhooks/stripetest"

// rareScenarios are what seldom happens to a customer.
func rareScenarios() []scenario {
	return []scenario{
		{name: "paused by hand, resumed", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{BillingMode: stripetest.Flexible})
			st.tick(3 * aDay)
			_, err := st.Pause(id)
			st.ok(err)
			st.flow(false)
			st.tick(40 * aDay)
			if st.random.IntN(2) == 0 {
				_, err = st.Resume(id)
				st.ok(err)
				st.flow(false)
				st.tick(40 * aDay)
			}
		}},
		{name: "a schedule that is released", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{})
			_, err := st.SchedulePrice(id, "price_max")
			st.ok(err)
			st.tick(3 * aDay)
			st.ok(st.ReleaseSchedule(id))
			st.flow(false)
			st.tick(40 * aDay)
		}},
		{name: "an invoice voided or written off", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{})
			st.pay(stripetest.PaymentDeclines)
			st.tick(30 * aDay)
			if st.random.IntN(2) == 0 {
				st.ok(st.VoidInvoice(st.latest(id)))
			} else {
				st.ok(st.MarkUncollectible(st.latest(id)))
			}
			st.flow(false)
			st.pay(stripetest.PaymentSucceeds)
			st.tick(30 * aDay)
		}},
		{name: "one-off invoices and credit", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{})
			_, err := st.InvoiceOnce(st.customer, 700)
			st.ok(err)
			st.ok(st.Credit(st.customer, 100_000))
			st.tick(40 * aDay)
			st.then(id, stripetest.UpdateParams{Price: "price_max", Proration: stripetest.AlwaysInvoice})
			_, err = st.InvoiceOnce(st.customer, 700)
			st.ok(err)
			st.tick(30 * aDay)
		}},
		{name: "a payment that takes days", play: func(st *stream) {
			st.pay(stripetest.PaymentDelayed)
			session, err := st.Checkout(stripetest.CheckoutParams{ClientReferenceID: st.workspace, Subscribe: stripetest.SubscribeParams{
				Customer: st.customer, Price: "price_pro",
			}})
			st.ok(err)
			st.flow(false)
			st.ok(st.SettleCheckout(session.ID, st.random.IntN(2) == 0))
			st.flow(false)
			st.tick(2 * aDay)
		}},
		{name: "a renewal that takes days to pay", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{})
			st.pay(stripetest.PaymentDelayed)
			st.tick(29 * aDay)
			st.ok(st.SettlePayment(st.latest(id), st.random.IntN(2) == 0))
			st.flow(false)
			st.tick(2 * aDay)
		}},
		{name: "an inquiry that becomes a dispute", needsAPI: true, play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{})
			dispute, err := st.OpenDispute(st.latest(id), true)
			st.ok(err)
			st.flow(false)
			st.ok(st.EscalateDispute(dispute.ID))
			st.tick(40 * aDay)
			st.ok(st.CloseDispute(dispute.ID, st.random.IntN(2) == 0))
			st.tick(aDay)
		}},
		{name: "one of two customers is deleted", play: func(st *stream) {
			first := st.customer
			st.begin(stripetest.SubscribeParams{Price: "price_max"})
			second := st.CreateCustomer(stripetest.CustomerParams{TestClock: st.clock})
			st.tick(3 * aDay)
			st.begin(stripetest.SubscribeParams{Customer: second.ID, Price: "price_basic"})
			st.ok(st.DeleteCustomer(first))
			st.flow(false)
			st.tick(40 * aDay)
		}},
		{name: "an abandoned checkout, an archived price", play: func(st *stream) {
			_, err := st.AbandonCheckout(stripetest.CheckoutParams{ClientReferenceID: "somebody", Subscribe: stripetest.SubscribeParams{Customer: st.customer, Price: "price_max"}})
			st.ok(err)
			id := st.begin(stripetest.SubscribeParams{})
			st.ok(st.ArchivePrice("price_pro"))
			st.tick(40 * aDay)
			_, err = st.Renew(id)
			st.ok(err)
			st.flow(false)
		}},
		{name: "an end that is set before a renewal that fails", play: func(st *stream) {
			id := st.begin(stripetest.SubscribeParams{BillingMode: stripetest.Flexible})
			at := st.today().Add(45 * aDay)
			st.then(id, stripetest.UpdateParams{CancelAt: &at})
			st.pay(stripetest.PaymentDeclines)
			st.tick(30 * aDay)
			st.then(id, stripetest.UpdateParams{Price: "price_max"})
			st.tick(30 * aDay)
		}},
	}
}
