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
	_       [64]byte // keeps the locks of two shards out of one cache line
}

// cached is a value in memory; all but used is fixed. Its times count from the
// cache's making.
type cached struct {
	info    PlanInfo
	expires time.Duration
	// used is when the value was last asked for, in seconds.
	used atomic.Int64
}

func (e *cached) serves(at time.Time, now time.Duration) bool {
	return now < e.expires && e.info.Period.Contains(at)
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
func (s *shard) keepLocked(workspace string, info PlanInfo, life lifetime) bool {
	old := s.entries[workspace]
	if old != nil && life.now < old.expires {
		if old.info.newer(info) {
			return false
		}
		// Of one state the period that ends last comes last: a month on the default
		// plan begins before the subscription that ended in it.
		if !info.newer(old.info) && old.info.Period.End.After(info.Period.End) {
			return true
		}
	}
	if old == nil && len(s.entries) >= s.most {
		s.evictLocked(life.now)
	}
	e := &cached{info: info, expires: life.expires}
	e.touch(life.now)
	s.entries[workspace] = e
	return true
}

// endLocked takes a load off the list, unless another has taken its place.
func (s *shard) endLocked(workspace string, l *loading) {
	if s.loads[workspace] == l {
		delete(s.loads, workspace)
	}
}

// lifetime is when a value is stored and when it is too old to serve.
type lifetime struct{ now, expires time.Duration }

// evictLocked drops, of a few values that the map yields in no order, one past
// its time or else the one not asked for the longest.
func (s *shard) evictLocked(now time.Duration) {
	victim, oldest, seen := "", int64(0), 0
	for workspace, e := range s.entries {
		if now >= e.expires {
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
