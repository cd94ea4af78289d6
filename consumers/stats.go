package consumers

import "sync/atomic"

// Stats counts what the consumers did since they were made. It is safe for
// concurrent use; the counts only rise.
type Stats struct {
	acknowledged, deferred, retried, dead  atomic.Int64
	allowed, denied, unavailable, repeated atomic.Int64
	withdrawn, contradictions, folded      atomic.Int64
}

// Acknowledged is the number of messages that were handled and acknowledged.
func (s *Stats) Acknowledged() int64 { return s.acknowledged.Load() }

// Deferred is how often a message was put off because a service was away.
func (s *Stats) Deferred() int64 { return s.deferred.Load() }

// Retried is how often a message was put off because handling it failed.
func (s *Stats) Retried() int64 { return s.retried.Load() }

// DeadLettered is the number of messages that were given up.
func (s *Stats) DeadLettered() int64 { return s.dead.Load() }

// Allowed is the number of allowing decisions published.
func (s *Stats) Allowed() int64 { return s.allowed.Load() }

// Denied is the number of denying decisions published, those of Unavailable included.
func (s *Stats) Denied() int64 { return s.denied.Load() }

// Unavailable is the number of 9008 decisions published.
func (s *Stats) Unavailable() int64 { return s.unavailable.Load() }

// Repeated is the number of decisions that the stream had already, and that were
// not stored again.
func (s *Stats) Repeated() int64 { return s.repeated.Load() }

// Withdrawn is the number of requests whose published denial was put on record in Redis.
func (s *Stats) Withdrawn() int64 { return s.withdrawn.Load() }

// Contradictions is the number of completions whose outcome contradicts an
// earlier one of the same execution. The earlier one stands.
func (s *Stats) Contradictions() int64 { return s.contradictions.Load() }

// Folded is the number of messages this process folded into the ledger.
func (s *Stats) Folded() int64 { return s.folded.Load() }
