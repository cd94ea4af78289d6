// Package webhooks is the room where Stripe's events come in. It is the only
// one that knows Stripe: its types end here, and what leaves is what a
// subscription is now, in this project's own words.
//
//	POST /webhooks/stripe
//	   │ Door      the raw body, at most 1 MiB ─ verify ─ sniff: which event, about what?
//	   │           the signature before anything is read; nothing but Postgres is asked
//	   ▼
//	 Ledger        one transaction, then the 200
//	   │           stripe_events ─ stripe_deliveries ─ stripe_sync_requests, generation + 1
//	   ▼
//	 Worker        the subscription and its invoices as Stripe has them, or without a
//	   │           key as the events that have arrived show them
//	   │ decode    every version of the API to objects of our own
//	   │ bind      which invoice pays which period
//	   │ own       whose it is: stored mapping, metadata, checkout, customer
//	   ▼
//	 snapshot ───► subscriptions: insert, roll, amend or close; rows, pointer, news,
//	               and the events' states, in one transaction
//
//	Sweep ─► Ledger    events that Stripe lists and that were never delivered
//	Sync ──► Ledger    look-ups of subscriptions that are not as the rows say: what no
//	                   event told of, and who subscribed before Headroom was there
//
// Three rules shape it. An event is stored before it is acknowledged, so that a
// kill loses nothing. Events come late, twice and out of order, so that none is
// applied: each is a hint that an object may have changed, and what is written
// comes from a look at the whole of it. And what cannot be understood is neither
// guessed nor sent back, but parked with its reason for a person to see.
package webhooks
