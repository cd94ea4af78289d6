package consumers

import "sync/atomic"

// RelayStats counts what a Relay did since it was made. It is safe for concurrent
// use; the counts only rise.
type RelayStats struct {
	published, failed, broadcast, unheard atomic.Int64
}

// Published is the number of news that the streams took, dead letters included.
func (s *RelayStats) Published() int64 { return s.published.Load() }

// Failed is how often a piece of news could not be published. It is tried again.
func (s *RelayStats) Failed() int64 { return s.failed.Load() }

// Broadcast is the number of invalidations that RelayOptions.Broadcast took.
func (s *RelayStats) Broadcast() int64 { return s.broadcast.Load() }

// Unheard is the number of invalidations that were not broadcast, because that failed
// or too many waited. They are not tried again.
func (s *RelayStats) Unheard() int64 { return s.unheard.Load() }
