// Package subscriptions knows which plan a workspace is on at a given moment:
// the catalog of plans and its revisions, the billing periods of subscriptions,
// and a cache in front of both.
//
//	catalog.yaml ─ ParseCatalog ─ Store.ApplyCatalog ─► plan_revisions (immutable)
//	                                                        │ snapshot of the terms
//	an operator ── Store.Assign ─────────────────────► subscriptions (a row a period)
//	                                                        │
//	admission ─ Cache.Lookup ─ miss ─ Store.PlanInfo ◄──────┘
//	                                     └─ roll: a period that is over gets its successor
//
//	news of all this ─ outbox, in the same transaction ─ Outbox.Relay ─► whoever publishes
//
// A subscription is a chain of rows, one for each billing period, and a renewal
// is a new row with a new id. The quota counter is named by a row's usage epoch,
// so a new period starts its count at zero without anything being deleted.
//
// A workspace without a live subscription is on the catalog's default plan, in
// calendar months of UTC. That is an answer of the database; a failed read is an
// error and never taken for it.
//
// The package knows neither the counters in Redis nor Stripe's types.
package subscriptions
