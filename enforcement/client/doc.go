// Package client is what an engine beside Headroom imports: it keeps a process's
// knowledge of plans current.
//
//	Postgres ── a workspace's plan, when it is asked for ──────────┐
//	         ── the catalog's revision, each second ──────────┐    │
//	headroom.plans.invalidated.<ws> ─► Invalidations ─────────┼─► Plans ─► Lookup
//	a Redis pub/sub channel ─────────► RedisInvalidations ────┘
package client
