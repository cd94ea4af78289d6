// Package client is what an engine beside Headroom imports.
//
//	engine                        NATS                            Headroom
//	Admit ───────────────► executions.requested.<ws> ───────────► decides
//	  ▲ *Run, or *Denied        _INBOX.<client>.<event> ◄────────── Headroom-Reply
//	  │
//	Run.Tasks, Payload, Elapsed   no round trip: the admission's own limits
//	Run.Context ◄───────── decisions.<ws>  (stop that execution) ◄─ runtime denial
//	  └ while it lives ──► executions.progressed.<ws> ────────────► lease moves on
//	Run.Complete ────────► executions.completed.<ws> ─────────────► slot is free
//
//	Request ─► executions.requested.<ws>      for an engine that reads its answers
//	Decisions ◄─ durable ◄─ decisions.<ws>    from the stream instead
//
//	Postgres ── a workspace's plan, when it is asked for ──────────┐
//	         ── the catalog's revision, each second ──────────┐    │
//	headroom.plans.invalidated.<ws> ─► Invalidations ─────────┼─► Plans ─► Lookup
//	a Redis pub/sub channel ─────────► RedisInvalidations ────┘
//
// It fails closed: an execution runs only with a *Run in hand. Whatever is asked may
// be asked again, by this process or another: an execution that was allowed is
// allowed again and charged once.
package client
