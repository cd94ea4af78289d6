// Package guardtest proves an implementation of guard.Lock: yours, and the four of
// package guard.
//
//	Harness.Open ─► a Bench: the lock, and a counter that it protects
//	     │                   │
//	     │            N guards at once, from this process and from two others
//	     │                   │
//	     └─ Run ─► t.Run("5.2.2", …): exactly floor(limit / requested) succeed,
//	                                  and the counter ends there
//
// A subtest whose name is a number is the requirement of that number of chapter 5
// (Concurrency) of the OpenEntitlements specification. The others are Headroom's own.
//
//	func TestMyLock(t *testing.T) {
//		guardtest.Run(t, guardtest.Harness[pgx.Tx]{Open: open, Transactional: true})
//	}
//
// Its own tests run the locks of package guard, and a number of broken ones, which it
// has to find.
package guardtest
