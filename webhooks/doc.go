// Package webhooks is the room where Stripe's events come in. It is the only
// one that knows Stripe: its types end here, and what leaves is a transition of
// a subscription in this project's own words.
//
//	Stripe ── POST ── verify ── store ── reconcile ──> subscriptions ── schemas
//	                  the       before    the whole     the row of
//	                  raw body  the 200   object        the period
//
// Three rules shape it. An event is stored before it is acknowledged, so that a
// kill loses nothing. Events come late, twice and out of order, so that none is
// applied as a delta: each is the occasion to reconcile the row with the object
// as Stripe has it. And a sweep finds what no event told.
//
// The room holds no code yet: periods are opened with "headroom workspaces
// assign" until it does.
package webhooks
