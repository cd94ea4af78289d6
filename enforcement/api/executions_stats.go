package api

import (
	"sync/atomic"
	"time"
)

// ExecutionsStats counts what the doors did since they were made. It is safe for
// concurrent use; the counts only rise.
type ExecutionsStats struct {
	allowed, denied, unavailable, busy atomic.Int64
	batches, batched, waited           atomic.Int64
	withdrawn, extended, stopped       atomic.Int64
	completed, recorded                atomic.Int64
}

// Allowed is the number of admissions that were answered with an allow.
func (s *ExecutionsStats) Allowed() int64 { return s.allowed.Load() }

// Denied is the number of admissions that were answered with a denial, in the shadow
// those that would have been.
func (s *ExecutionsStats) Denied() int64 { return s.denied.Load() }

// Unavailable is how many callers were left without an answer, those of Busy included.
func (s *ExecutionsStats) Unavailable() int64 { return s.unavailable.Load() }

// Busy is how many callers were turned away because too many waited.
func (s *ExecutionsStats) Busy() int64 { return s.busy.Load() }

// Batches is how many batches of questions of any kind were answered, and Batched how
// many questions were in them.
func (s *ExecutionsStats) Batches() int64 { return s.batches.Load() }

// Batched is how many questions were in the batches.
func (s *ExecutionsStats) Batched() int64 { return s.batched.Load() }

// Waited is how long callers waited for answers of any kind, added up.
func (s *ExecutionsStats) Waited() time.Duration { return time.Duration(s.waited.Load()) }

// Withdrawn is the number of allows that were taken back because the stream held a
// denial of the same request.
func (s *ExecutionsStats) Withdrawn() int64 { return s.withdrawn.Load() }

// Extended is the number of answered progresses, and Stopped how many of the executions
// were told to stop.
func (s *ExecutionsStats) Extended() int64 { return s.extended.Load() }

// Stopped is how many running executions were told to stop.
func (s *ExecutionsStats) Stopped() int64 { return s.stopped.Load() }

// Completed is the number of completions that were recorded and applied.
func (s *ExecutionsStats) Completed() int64 { return s.completed.Load() }

// Recorded is the number of completions that were recorded and left to the consumers.
func (s *ExecutionsStats) Recorded() int64 { return s.recorded.Load() }
