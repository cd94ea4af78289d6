// Package usage counts what a workspace has of each feature, in Postgres, and
// refuses what its plan has no room for.
//
//	Consume ─► Plans.Lookup ─► one guarded statement ─┬─► Balance
//	  in the caller's own transaction, so that        ├─► QuotaExceeded     no room
//	  a rollback gives the units back                 ├─► PolicyViolation   not in the plan
//	                                                  └─► ResourceLocked    a downgrade took it
package usage
