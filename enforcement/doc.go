// Package enforcement decides. It owns the limits' meaning, the codes, the Lua
// scripts and their keys, and turns a request, a progress or a completion into
// what Redis says of it.
//
//	Request ──► Plans.Lookup ──► admit.lua ──┬─► answer ──► Decision
//	                 ▲                       │
//	                 │ newer plan            ├─ stale: the plan is older than one
//	                 └───────────────────────┤         enforced before, or its period
//	                                         │         is not the present one
//	          open.lua ◄── UsageSource ◄─────┼─ missing: new period, new terms
//	             └──► asked again            │
//	  begin.lua ─► fence ─► Watermark        │
//	     ─► UsageSource ─► rebuild.lua ◄─────┴─ of another epoch: first sight, loss,
//	             └──► asked again               another primary
//	Completion ──► release.lua ──► Release       Progress ──► extend.lua ──► Extension
//
// What the scripts keep to: every limit is checked before anything is written;
// a slot is held by an execution's id with a lease, never by a number; an answer
// is on record, so that asking again repeats it; periods, leases and records
// expire by Redis's clock alone. All keys of a workspace share one slot of a
// Redis Cluster. scripts/prelude.lua describes them; model_test.go is the same
// in plain Go, and the scripts are fuzzed against it.
//
// Redis may lose its memory, or go back to an earlier one. A workspace is of an epoch,
// which changes with the primary's replication id (each start and each promotion has a
// new one) and with the loss of its key. In another epoch nothing on record is an answer:
// what was decided before is waited for, for as long as it may still be published, and
// then the workspace is rebuilt from the ledger, which has all that anybody heard of.
//
// A start rate of n a minute is the generic cell rate algorithm with a burst of
// n: n starts at once, then one each 60/n seconds.
//
// One admission costs 138 bytes of Redis memory while it is remembered, and 280
// while it runs: measured at a million of them, named by UUIDs and spread over
// 1,000 workspaces, on Debian's Redis 7.0 (BenchmarkMemory).
package enforcement
