// Package usage counts what a workspace has of each feature, in Postgres, and
// refuses what its plan has no room for.
//
//	Consume ─► Plans.Lookup ─► one guarded statement ─┬─► Balance
//	  in the caller's own transaction, so that        ├─► QuotaExceeded     no room
//	  a rollback gives the units back                 ├─► PolicyViolation   not in the plan
//	                    ▲                             ├─► ResourceLocked    a downgrade took it
//	                    │                             │
//	                    └──── Plans.Invalidate ◄──────┘   the database has a newer plan
//
//	ConsumeAll    many changes, all or nothing, in one statement
//	ConsumeOnce ─► key taken ─► the same statement ─► answer kept ─► commit
//	  in a transaction of its own; who waits for the same counter shares the next one
//	Run           forgets kept answers after a day
//
// The tables stand in the application's database. A row of usage_counters is locked by
// whoever changes it, and usage_resources and the thresholds change under that
// lock alone. Whether a resource is locked is computed from its place in the order:
//
//	units of no resource │ chosen, in their order │ the oldest … │ … the newest
//	├──────────── limit of the running period ─────────────┤ locked from here
package usage
