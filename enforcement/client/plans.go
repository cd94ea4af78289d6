package client

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

const (
	// catalogGlance is how often a running process looks for a new catalog, and
	// glancePatience how long one look may take.
	catalogGlance  = time.Second
	glancePatience = 2 * time.Second
)

// PlanSource is where plans are read. subscriptions.Store is one.
type PlanSource interface {
	// PlanInfo reads what a workspace is measured against at an instant.
	PlanInfo(ctx context.Context, workspace string, at time.Time) (subscriptions.PlanInfo, error)
	// CatalogRevision is a number that rises with each catalog, 0 before the first.
	CatalogRevision(ctx context.Context) (int64, error)
}

// PlansOptions makes a Plans. Source is required, and JetStream, or Redis with its
// channel, or both.
type PlansOptions struct {
	Source PlanSource
	// JetStream is where invalidations are heard; without it they are not heard there.
	JetStream jetstream.JetStream
	Topology  schemas.Topology
	// Redis and RedisChannel are where invalidations are heard too.
	Redis        redis.UniversalClient
	RedisChannel string
	// TTL is how long a plan is used before it is read again: 30 minutes. For
	// as long again it may be used while the database is away.
	TTL time.Duration
	// Applied is that of InvalidationsOptions.
	Applied func(after time.Duration)
	// Log is where to log: nowhere.
	Log *slog.Logger
}

// Plans is a process's knowledge of plans: a cache that is told of what changes. It
// is an enforcement.Plans, and safe for concurrent use.
//
//	a change of one workspace    Invalidations, RedisInvalidations ─► drop that one
//	a new catalog                looked for each second ─────────────► read all again
//	a connection that was lost   as soon as it is back ──────────────► read all again
//
// A catalog concerns every workspace on the default plan, known or not.
type Plans struct {
	options PlansOptions
	cache   *subscriptions.Cache
}

// NewPlans checks the options. It does not talk to any server yet.
func NewPlans(o PlansOptions) (*Plans, error) {
	hasChannel := o.Redis != nil && o.RedisChannel != ""
	if o.Source == nil || o.JetStream == nil && !hasChannel {
		return nil, errors.New("make plans: Source is required, and JetStream or Redis with a RedisChannel")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Plans{
		options: o, cache: subscriptions.NewCache(o.Source.PlanInfo, subscriptions.CacheOptions{TTL: o.TTL}),
	}, nil
}

// Lookup is that of subscriptions.Cache. Before Run hears of changes it may give
// what has changed since it was read.
func (p *Plans) Lookup(ctx context.Context, workspace string, at time.Time) (subscriptions.PlanInfo, error) {
	return p.cache.Lookup(ctx, workspace, at)
}

// Invalidate is that of subscriptions.Cache.
func (p *Plans) Invalidate(workspace string, revision int64) { p.cache.Invalidate(workspace, revision) }

// Stats are the cache's counts.
func (p *Plans) Stats() subscriptions.CacheStats { return p.cache.Stats() }

// Run keeps the cache current until ctx ends, and then returns nil. An error means
// that it cannot, because a connection was closed for good.
func (p *Plans) Run(ctx context.Context) error {
	o := p.options
	parts, ctx := errgroup.WithContext(ctx)
	if o.JetStream != nil {
		news := NewInvalidations(InvalidationsOptions{
			JetStream: o.JetStream, Topology: o.Topology, Plans: p.cache, Applied: o.Applied, Log: o.Log,
		})
		parts.Go(func() error { return news.Run(ctx) })
	}
	if o.Redis != nil && o.RedisChannel != "" {
		news := NewRedisInvalidations(RedisInvalidationsOptions{
			Redis: o.Redis, Channel: o.RedisChannel, Plans: p.cache, Applied: o.Applied, Log: o.Log,
		})
		parts.Go(func() error { return news.Run(ctx) })
	}
	parts.Go(func() error {
		p.watch(ctx)
		return nil
	})
	return parts.Wait()
}

// watch makes all plans be read again whenever a catalog is applied. While the
// database is away nothing can be applied, so a failed look is no news.
func (p *Plans) watch(ctx context.Context) {
	ticker := time.NewTicker(catalogGlance)
	defer ticker.Stop()
	for known := int64(-1); ; {
		revision, err := p.glance(ctx)
		switch {
		case err != nil:
			p.options.Log.Debug("catalog could not be looked at", "error", err)
		case revision == known:
		case revision == 0:
			p.options.Log.Warn("no plans yet, executions wait until a catalog is applied", "remedy", "headroom plans apply FILE")
			known = revision
		default:
			// What was cached before the first look may be older than it.
			p.cache.Expire()
			p.options.Log.Info("catalog in force", "revision", revision)
			known = revision
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (p *Plans) glance(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, glancePatience)
	defer cancel()
	return p.options.Source.CatalogRevision(ctx)
}
