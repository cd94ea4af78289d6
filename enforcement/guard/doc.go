// Package guard makes "count, compare with the limit, insert" one step, for limits on what
// lives in the application's own database.
//
//	Guard ─► request is in order? ─► resolve ─► Lock.Run(organization, privilege)
//	                                                │
//	         ProcessLock      one process           │ resolve again, from memory
//	         AdvisoryLock     one database          │ resource not locked?
//	         RowLock          one database          │ count(tx)
//	         SerializableLock one database          │ requested <= limit - current?
//	                                                │ act(tx)
//	                                                └─► commit, release
//
// Without it two requests read 4 of 5 at the same time, both pass, and there are 6. Where a
// counter is kept anyway, package usage does the same in one guarded UPDATE; guard is
// for where the count is a query over the application's rows.
//
// It follows chapter 5 (Concurrency) of the OpenEntitlements specification. What that
// chapter leaves to others, which is errors, details, kinds and providers, is
// Headroom's own. Package guardtest proves locks, these and others.
//
// All of it protects from those who use it: an insert beside a guard is not
// serialised by anything.
package guard
