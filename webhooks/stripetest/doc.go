// Package stripetest is a small Stripe that bills truthfully: it holds customers,
// subscriptions, invoices and events, has a clock of its own, and does what Stripe
// does when that clock moves. Tests of the ingester and the demo stack use it.
//
//	actions ──────► model ──── every change ───► events ──► Endpoint ──► POST, signed
//	Subscribe        one lock,   a snapshot of      │
//	Update           one clock   the object then    └──► Event.Body(version)
//	Cancel …           │
//	Advance ─► what    ├──► Handler: GET /v1/…, at the Stripe-Version of the call
//	           is due  │
//	                   └──► Truth: the periods that really began, never read from JSON
//
// A renewal takes the time that Stripe takes. At the end of a period (and the few
// seconds that Stripe needs to notice) the subscription moves to the next one and stays
// active while its invoice is a draft; an hour later the invoice is finalized and
// charged; only then is it known whether the period is paid:
//
//	end of period      + 16 s                      + 1 h 16 s
//	     │             invoice.created             invoice.finalized
//	     │             customer.subscription       invoice.paid, or
//	     │               .updated (new period)     invoice.payment_failed and
//	     ▼                                           .updated (past_due)
//
// Objects and events are rendered when they are asked for, at any API version: what
// moved between the versions is in version.go and the render files.
//
// The same seed and the same calls give the same ids, events and bytes. All methods may
// be called at once from several goroutines; then only the order of calls decides.
//
//	stripe := stripetest.New(stripetest.Options{Seed: 1})
//	pro := stripe.CreatePrice(stripetest.PriceParams{Amount: 2500})
//	customer := stripe.CreateCustomer(stripetest.CustomerParams{})
//	sub, err := stripe.Subscribe(stripetest.SubscribeParams{Customer: customer.ID, Price: pro.ID})
//	// …
//	stripe.Advance(32 * 24 * time.Hour) // renewed and paid
//	truth, err := stripe.Truth(sub.ID, nil)
//	// truth.Periods has two periods, both paid
//
// Known simplifications: no taxes, coupons, meters or send_invoice collection; voiding an
// invoice does not end dunning; an endpoint that refuses invoice.created delays no
// finalization; events of a test clock carry its simulated time; a call that asks for
// expansion is refused.
package stripetest
