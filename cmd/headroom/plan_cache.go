package main

import (
	"context"
	"errors"
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
	catalog *part
	log     *slog.Logger
	current atomic.Pointer[subscriptions.Cache]
}

// newPlanCache tells catalog whether there is a default plan, as long as watch runs.
func newPlanCache(store *subscriptions.Store, ttl time.Duration, catalog *part, log *slog.Logger) *planCache {
	c := &planCache{store: store, options: subscriptions.CacheOptions{TTL: ttl}, catalog: catalog, log: log}
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
	known := int64(-1)
	for {
		revision, err := c.look(ctx, known)
		switch {
		case err != nil:
			c.catalog.fail(err)
			c.log.Debug("catalog could not be looked at", "error", err)
		case revision == known:
		case revision == 0:
			c.log.Warn("no plans yet, executions wait until a catalog is applied", "remedy", "headroom plans apply FILE")
			known = revision
		default:
			// What was cached before the first look may be older than it.
			c.empty()
			c.log.Info("catalog in force", "revision", revision)
			known = revision
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// look is the catalog's revision, 0 without one. When it is not the known one,
// look tells the catalog part whether there is a default plan now.
func (c *planCache) look(ctx context.Context, known int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	revision, err := c.store.CatalogRevision(ctx)
	if err != nil || revision == known {
		return revision, err
	}
	err = c.store.RequireDefaultPlan(ctx)
	switch {
	case errors.Is(err, subscriptions.ErrNoDefaultPlan):
		noDefault := errors.New("no default plan: apply a catalog with `headroom plans apply FILE`")
		c.catalog.use(func(context.Context) error { return noDefault })
	case err != nil:
		return 0, err
	default:
		c.catalog.use(func(context.Context) error { return nil })
	}
	return revision, nil
}
