// Package ledger keeps in Postgres what the decisions stream says: one row per
// allowed execution, denials rolled up by the minute, and per period how much
// is used, so that a Redis that forgot everything can be told without counting.
//
//	HEADROOM_DECISIONS ──┐            ┌─ ledger_applied  moved from After to Through, or nothing happens
//	  read in order      ├─► Fold ────┼─ executions      allowed and completed, one row each
//	HEADROOM_EXECUTIONS ─┘  one       ├─ period_usage    used and peak, moved once per execution
//	  completed, in order   transaction├─ denials         count per minute, workspace, code and kind
//	HEADROOM_PLANS ───────┘            └─ usage_thresholds  80 and 100 percent, once, and the outbox
//	  invalidated, in order
//
// # Why nothing counts twice, and nothing is skipped
//
// The position in each stream lives in ledger_applied and moves in the same
// transaction as what was read. A Batch names the position it continues from;
// Fold takes the position's row lock and folds only if the position still is
// there, else it changes nothing and returns ErrMoved. So of two processes that
// read the same messages exactly one folds them, and a process that died
// after the commit finds its messages behind the position. The position is
// no acknowledgement to JetStream, whose redeliveries come out of order: readers
// read a stream from position+1 upwards, and a batch is contiguous in what it read.
// Leadership (TryLead) only saves idle processes the work; it is not needed for any of this.
//
// The same decision may stand in the stream twice, when it was published again
// after the stream's duplicate window. An execution is counted when its row
// turns decided, which happens once; denials have no row each, and their reader
// leaves such copies out (consumers).
//
// Order between the two streams is not relied on: a completion that is read
// before its decision leaves a row that is not decided, which the decision fills.
package ledger
