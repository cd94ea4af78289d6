package subscriptions

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxShards = 64
	// minPerShard keeps a small cache in few shards, so that each evicts among many.
	minPerShard = 32
	// evictionSample is how many values are compared to find one to evict.
	evictionSample = 8
)

// shardCount is a power of two.
func shardCount(entries int) int {
	count := 1
	for count < maxShards && entries/(count*2) >= minPerShard {
		count *= 2
	}
	return count
}

// shard is a part of the cache under one lock. Both maps are by workspace.
type shard struct {
	mu      sync.RWMutex
	entries map[string]*cached
	loads   map[string]*loading
	most    int
	hits    atomic.Int64
	_       [64]byte // keeps the locks of two shards out of one cache line
}

// cached is a value in memory, or the refusal of a workspace; all but used is
// fixed. Its durations count from the cache's making.
type cached struct {
	info    PlanInfo
	refusal error
	// generation is the cache's when the reading began.
	generation uint64
	// from and until are what the value holds for; both zero is any instant.
	from, until time.Time
	expires     time.Duration
	// spare is how long the value may stand in for one that cannot be read.
	spare time.Duration
	// used is when the value was last asked for, in seconds.
	used atomic.Int64
}

// current reports whether nothing speaks against the value but its age.
func (e *cached) current(at time.Time, generation uint64) bool {
	return e.generation == generation && (e.refusal != nil || !at.Before(e.from) && at.Before(e.until))
}

func (e *cached) serves(at time.Time, now time.Duration, generation uint64) bool {
	return now < e.expires && e.current(at, generation)
}

// standsIn reports whether the value may be served while the database is away.
func (e *cached) standsIn(at time.Time, now time.Duration, generation uint64) bool {
	return now < e.spare && e.refusal == nil && e.current(at, generation)
}

// touch writes at most once a second, so that readers do not fight for the line.
func (e *cached) touch(now time.Duration) {
	if second := int64(now / time.Second); e.used.Load() != second {
		e.used.Store(second)
	}
}

// keepLocked stores a value unless the one there is live and from a later state
// or period, and reports whether the value may be handed out. A value past its
// time yields to whatever was read since.
func (s *shard) keepLocked(workspace string, e *cached, now time.Duration) bool {
	old := s.entries[workspace]
	if old != nil && now < old.expires && old.generation == e.generation {
		if old.info.newer(e.info) {
			return false
		}
		// Of one state the one that ends last comes last: a month on the default plan
		// begins before the subscription that ended in it.
		if !e.info.newer(old.info) && old.until.After(e.until) {
			return true
		}
	}
	if old == nil && len(s.entries) >= s.most {
		s.evictLocked(now, e.generation)
	}
	e.touch(now)
	s.entries[workspace] = e
	return true
}

// endLocked takes a load off the list, unless another has taken its place.
func (s *shard) endLocked(workspace string, l *loading) {
	if s.loads[workspace] == l {
		delete(s.loads, workspace)
	}
}

// evictLocked drops, of a few values that the map yields in no order, one past
// its time or else the one not asked for the longest.
func (s *shard) evictLocked(now time.Duration, generation uint64) {
	victim, oldest, seen := "", int64(0), 0
	for workspace, e := range s.entries {
		if now >= e.spare || e.generation != generation {
			victim = workspace
			break
		}
		if used := e.used.Load(); seen == 0 || used < oldest {
			victim, oldest = workspace, used
		}
		if seen++; seen == evictionSample {
			break
		}
	}
	delete(s.entries, victim)
}
