package subscriptions

import (
	"context"
	"hash/maphash"
	"sync/atomic"
	"time"
)

// The defaults of CacheOptions.
const (
	DefaultCacheTTL     = 30 * time.Minute
	DefaultCacheEntries = 100_000
	// DefaultCacheLoadTimeout leaves those who wait for a load time to act on
	// its failure: an answer about an execution is thrown away after two seconds.
	DefaultCacheLoadTimeout = 1500 * time.Millisecond
)

// refusalTTL bounds how long ErrNotEntitled is remembered. It is short because
// nothing but an invalidation ends it before, and long enough that a workspace
// which is refused and asks again and again costs the database next to nothing.
const refusalTTL = 5 * time.Second

// CacheOptions are the settings of a Cache; a zero field takes its default.
type CacheOptions struct {
	// TTL is how long a value may be served after it was read.
	TTL time.Duration
	// MaxEntries bounds the workspaces held; one takes about a kilobyte. Beyond it
	// one that was not asked for lately makes room.
	MaxEntries int
	// LoadTimeout bounds one load, whoever waits for it.
	LoadTimeout time.Duration
	// Now is the clock that the TTL is measured by, the machine's by default.
	// Whether a period contains an instant is never its business.
	Now func() time.Time
}

func (o CacheOptions) withDefaults() CacheOptions {
	if o.TTL <= 0 {
		o.TTL = DefaultCacheTTL
	}
	if o.MaxEntries <= 0 {
		o.MaxEntries = DefaultCacheEntries
	}
	if o.LoadTimeout <= 0 {
		o.LoadTimeout = DefaultCacheLoadTimeout
	}
	return o
}

// clock measures from the moment of the call on. Without a clock of the caller's
// it reads the monotonic one alone, which is half the cost of time.Now and half
// of what a hit costs.
func (o CacheOptions) clock() func() time.Duration {
	if o.Now == nil {
		start := time.Now()
		return func() time.Duration { return time.Since(start) }
	}
	start := o.Now()
	return func() time.Duration { return o.Now().Sub(start) }
}

// LoadFunc reads a workspace's plan info for an instant; Store.PlanInfo is one.
type LoadFunc func(ctx context.Context, workspace string, at time.Time) (PlanInfo, error)

// Cache keeps plan infos in memory. It is safe for concurrent use.
//
//   - A value is served until its TTL is over, and only for an instant that it
//     holds for: a period that has ended is never served, however young, nor a
//     value at or after its ValidUntil.
//   - A load under way is shared by all who ask for the workspace. It does not
//     end with the caller that began it, and each caller waits no longer than its
//     own context.
//   - An invalidation that arrives during a load wins: what the load brings is
//     used only if its revision is not below the announced one. Otherwise it is
//     read again, and handed to nobody.
//   - Expire makes everything unusable at once, what a load under way is reading
//     included.
//   - A revision never goes backwards: a reading older than a live value neither
//     replaces it nor is handed out.
//   - ErrNotEntitled is remembered for five seconds at most, and dropped like a
//     value. Other errors are handed to those who wait and not kept. There is
//     never more than one load of a workspace at a time.
//   - While the database is away (see outage) a value past its TTL is served for one
//     further TTL, with Exact false. What was invalidated, expired or is over is not.
//
// It is our own and not otter's because the rule for invalidations needs more
// than a cache for general use offers. Otter drops every load that an invalidation
// crosses, whatever it read; here a load that already saw the announced revision
// counts, so a burst of announcements costs one more reading and not one each.
// And here what is a hit depends on the caller's instant, and a load outlives
// the caller.
//
// The PlanInfo handed out shares its map of features with all other callers: it
// must not be changed.
type Cache struct {
	load    LoadFunc
	options CacheOptions
	// elapsed is the time since the cache was made.
	elapsed func() time.Duration
	seed    maphash.Seed
	shards  []shard
	// generation is how often Expire was called.
	generation atomic.Uint64
	outage     outage
	tally      tally
}

// NewCache makes a cache in front of load.
func NewCache(load LoadFunc, options CacheOptions) *Cache {
	options = options.withDefaults()
	count := shardCount(options.MaxEntries)
	c := &Cache{
		load: load, options: options, elapsed: options.clock(),
		seed: maphash.MakeSeed(), shards: make([]shard, count),
	}
	for i := range c.shards {
		c.shards[i].entries = map[string]*cached{}
		c.shards[i].loads = map[string]*loading{}
		c.shards[i].most = options.MaxEntries / count
	}
	return c
}

// Lookup returns the workspace's plan info for the instant, from memory or by a
// load. It fails with the load's error, with ErrStalePlan when the plan changes
// faster than it can be read, or when ctx ends before the load does.
func (c *Cache) Lookup(ctx context.Context, workspace string, at time.Time) (PlanInfo, error) {
	s, now := c.shard(workspace), c.elapsed()
	s.mu.RLock()
	e := s.entries[workspace]
	s.mu.RUnlock()
	if e != nil && e.serves(at, now, c.generation.Load()) {
		s.hits.Add(1)
		e.touch(now)
		return e.info, e.refusal
	}
	return c.await(ctx, workspace, at)
}

// Invalidate says that the workspace's plan info has at least this revision: a
// value below it is dropped, one at or above it stays. Revision 0 drops
// whatever there is. A load under way is held to the same.
func (c *Cache) Invalidate(workspace string, revision int64) {
	s := c.shard(workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.loads[workspace]; l != nil {
		l.invalidate(revision)
	}
	if e := s.entries[workspace]; e != nil && (revision <= 0 || e.info.Revision < revision) {
		delete(s.entries, workspace)
	}
}

// Expire makes everything that was read so far unusable, whether it is stored or
// still on its way: for when news may have been missed. It costs the same
// however much is held; each workspace is read again when it is next asked for.
func (c *Cache) Expire() { c.generation.Add(1) }

// Len is the number of values held, live or not.
func (c *Cache) Len() int {
	total := 0
	for i := range c.shards {
		c.shards[i].mu.RLock()
		total += len(c.shards[i].entries)
		c.shards[i].mu.RUnlock()
	}
	return total
}

func (c *Cache) shard(workspace string) *shard {
	return &c.shards[maphash.String(c.seed, workspace)&uint64(len(c.shards)-1)]
}
