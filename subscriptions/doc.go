// Package subscriptions knows which plan a workspace is on at a given moment:
// the catalog of plans and its revisions, the billing periods of subscriptions,
// and a cache in front of both.
//
//	catalog.yaml ─ ParseCatalog ─ Store.ApplyCatalog ─► plan_revisions (immutable)
//	                                                        │ snapshot of the terms
//	an operator ── Store.Assign ──┐                         │
//	a source ───── Store.Follow ──┼─ Transition ─ carryOut ─┴─► subscriptions (a row a period)
//	time ──────────── catchUp ────┘   (pure)         │   └────► workspaces (which one counts)
//	 (a lookup, Lifecycle)                           └────────► outbox (who has to hear of it)
//
//	admission ─ Cache.Lookup ─ miss ─ Store.PlanInfo ◄── workspaces, subscriptions
//	                                     └─ catchUp: what time has changed comes first
//
//	an operator ─ ChangeOverrides, ApplyToRunning ─ retake: other terms, in a Transition ─┐
//	an operator ─ Invalidate ─────────────────────────────────────────────────────────────┴─ settle
//
//	news of all this ─ outbox, in the same transaction ─ Outbox.Relay ─► whoever publishes
//
// A subscription is a chain of rows, one for each period, and a renewal is a new
// row with a new id. A period is as long as a quota: the billing period, or a month
// of it. The quota counter is named by a row's usage epoch, so a new period starts
// its count at zero without anything being deleted.
//
// Transition alone decides what a source's word does to the rows, Passage what a
// source would say had time alone passed, and Election which of several live
// subscriptions counts; carryOut writes all of it, and the events that tell it, in one
// transaction under the workspace's lock.
//
// A snapshot is the plan's terms with what the workspace has instead of them, and
// carries what to go back to: so an override that has expired is never used,
// whoever has or has not put the rows right by then.
//
// A workspace without a live subscription is on the catalog's default plan, in
// calendar months of UTC. That is an answer of the database; a failed read is an
// error and never taken for it.
//
// The package knows neither the counters in Redis nor Stripe's types.
package subscriptions
