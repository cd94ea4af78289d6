package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

// catalogGlance is how often a running instance looks for a new catalog.
const catalogGlance = time.Second

// planCache is the process's plan cache. A change of one workspace is announced
// and invalidates that one; a new catalog concerns every workspace on the
// default plan, known or not, so it makes all of them be read again.
type planCache struct {
	store   *subscriptions.Store
	options subscriptions.CacheOptions
	log     *slog.Logger
	current atomic.Pointer[subscriptions.Cache]
}

func newPlanCache(store *subscriptions.Store, ttl time.Duration, log *slog.Logger) *planCache {
	c := &planCache{store: store, options: subscriptions.CacheOptions{TTL: ttl}, log: log}
	c.empty()
	return c
}

func (c *planCache) empty() { c.current.Store(subscriptions.NewCache(c.store.PlanInfo, c.options)) }

// Lookup is that of subscriptions.Cache.
func (c *planCache) Lookup(ctx context.Context, workspace string, at time.Time) (subscriptions.PlanInfo, error) {
	return c.current.Load().Lookup(ctx, workspace, at)
}

// Invalidate is that of subscriptions.Cache.
func (c *planCache) Invalidate(workspace string, revision int64) {
	c.current.Load().Invalidate(workspace, revision)
}

// watch empties the cache whenever a catalog is applied, until ctx ends. While
// the database is away nothing can be applied, so a failed look is no news.
func (c *planCache) watch(ctx context.Context) error {
	ticker := time.NewTicker(catalogGlance)
	defer ticker.Stop()
	known, looked := int64(0), false
	for {
		revision, err := c.catalogRevision(ctx)
		switch {
		case err != nil:
			c.log.Debug("catalog could not be looked at", "error", err)
		case !looked && revision == 0:
			c.log.Warn("no plans yet, executions wait until a catalog is applied", "remedy", "headroom plans apply FILE")
		case revision != known:
			// What was cached before the first look may be older than it.
			c.empty()
			c.log.Info("catalog in force", "revision", revision)
		}
		if err == nil {
			known, looked = revision, true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// catalogRevision is the newest revision of a plan in force, 0 without any.
func (c *planCache) catalogRevision(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	plans, err := c.store.Plans(ctx)
	if err != nil {
		return 0, err
	}
	newest := int64(0)
	for _, plan := range plans {
		newest = max(newest, plan.Revision)
	}
	return newest, nil
}
