// Package consumers takes the execution events from JetStream, has them decided,
// publishes the decisions and keeps the ledger.
//
//	HEADROOM_EXECUTIONS,
//	HEADROOM_SUBSCRIPTIONS         lanes, several per kind                     HEADROOM_DECISIONS
//	requested ─► pull ─► batch ─► requested.go ─► Admit ─► publish, await ──────► decision.made
//	progressed ► pull ─► batch ─► progressed.go ► Extend ─► publish denials ────►      │
//	completed ─► pull ─► batch ─► completed.go ─► Release                              │
//	renewed ───► pull ─► batch ─► renewed.go ───► OpenPeriods, Invalidate              │
//	    │                             │ an error or nil per message                    │
//	    │                             ▼                                                │
//	    │                         settle.go ─► ack, delay, or dead letter and end      │
//	    │                                                                              │
//	    └─ completions, in order ─► ledger.go ─► Postgres ◄── decisions, in order ─────┘
//
//	outbox (Postgres) ─► relay.go ─► subscription.renewed, plan.invalidated, usage.threshold_reached
//
// A batch is what waits when a lane is free; nothing waits for a batch to fill. A
// message is acknowledged only after everything that it asked for is stored, so a
// crash at any point delivers it again, and the enforcer gives the answer
// that it gave before, under the same decision id, which the stream stores once.
//
// Acknowledgements do not fence anything, and messages are delivered again out
// of order; what is right rests on the enforcer's records, never on either.
package consumers
