package subscriptions

import "sync/atomic"

// tally counts what is not counted by shard.
type tally struct {
	misses, stale, failed atomic.Int64
}

// CacheStats is what a Cache did since it was made. All but Entries only rise.
type CacheStats struct {
	// Entries is the number of values held, live or not.
	Entries int
	// Hits were answered from memory, ErrNotEntitled included, and Misses by a load
	// or not at all. Stale were answered from memory although the TTL was over,
	// because the database is away.
	Hits, Misses, Stale int64
	// Failed is the number of loads that ended with an error other than ErrNotEntitled.
	Failed int64
	// Expiries is how often Expire was called.
	Expiries int64
}

// Stats reads the counts.
func (c *Cache) Stats() CacheStats {
	stats := CacheStats{
		Entries: c.Len(), Misses: c.tally.misses.Load(), Stale: c.tally.stale.Load(),
		Failed: c.tally.failed.Load(), Expiries: int64(c.generation.Load()),
	}
	for i := range c.shards {
		stats.Hits += c.shards[i].hits.Load()
	}
	return stats
}
