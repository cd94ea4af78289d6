package enforcement

import (
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/subscriptions"
)

// Options makes an Enforcer. Redis, Plans and Usage are required; what is zero
// of the rest has the default of its comment.
type Options struct {
	// Redis is a single server, a Sentinel set or a Cluster, version 7.0 or later.
	Redis redis.UniversalClient
	Plans Plans
	Usage UsageSource
	// Prefix is the first part of every key: "headroom".
	Prefix string
	// LeaseGrace is added to a plan's longest duration to make a lease. Zero adds
	// nothing.
	LeaseGrace time.Duration
	// LeaseDefault is the lease where a plan has no longest duration: 24 hours.
	LeaseDefault time.Duration
	// Window is how long an answer is remembered after its execution is over: at
	// least as long as its events can still be delivered again. 7 days.
	Window time.Duration
	// Watermark tells when Usage knows of all that was decided. Without one a workspace
	// is rebuilt from what Usage knows at that moment.
	Watermark Watermark
	// RebuildFence is how long after it was asked for a decision may still be published,
	// by any process: as long nobody is admitted after Redis lost its memory. 2 seconds.
	RebuildFence time.Duration
	// Now is this machine's clock: time.Now.
	Now func() time.Time
}

// Enforcer takes and records decisions. It is safe for concurrent use, and any
// number of them may share one Redis: none holds state of its own but what it
// learned of Redis's clock and the terms that it made of plan readings.
type Enforcer struct {
	redis        redis.UniversalClient
	plans        Plans
	usage        UsageSource
	watermark    Watermark
	fence        time.Duration
	sharded      bool // keys of different workspaces may lie on different servers
	prefix       string
	window       string // milliseconds, as the scripts take it
	leaseGrace   time.Duration
	leaseDefault time.Duration
	now          func() time.Time
	clock        clock
	terms        *termsCache
	// decided: somebody was decided about, some time.
	decided atomic.Bool
}

// New makes an Enforcer. It does not talk to Redis yet.
func New(o Options) *Enforcer {
	e := &Enforcer{
		redis: o.Redis, plans: o.Plans, usage: o.Usage, watermark: o.Watermark, fence: 2 * time.Second,
		prefix: "headroom", leaseGrace: max(o.LeaseGrace, 0), leaseDefault: 24 * time.Hour, now: time.Now,
		terms: newTermsCache(),
	}
	switch o.Redis.(type) {
	case *redis.ClusterClient, *redis.Ring:
		e.sharded = true
	}
	if o.RebuildFence > 0 {
		e.fence = o.RebuildFence
	}
	window := 7 * 24 * time.Hour
	if o.Prefix != "" {
		e.prefix = o.Prefix
	}
	if o.LeaseDefault > 0 {
		e.leaseDefault = o.LeaseDefault
	}
	if o.Window > 0 {
		window = o.Window
	}
	if o.Now != nil {
		e.now = o.Now
	}
	e.window = milliseconds(max(window.Milliseconds(), 1))
	return e
}

// planOf is the terms of a plan reading. Making them costs a JSON encoding and a
// hash, so the last ones of a workspace are kept while the reading is the same.
func (e *Enforcer) planOf(plan subscriptions.PlanInfo) (*terms, error) {
	if t, ok := e.terms.get(plan); ok {
		return t, nil
	}
	t, err := e.termsOf(plan)
	if err != nil {
		return nil, err
	}
	e.terms.put(plan, t)
	return t, nil
}
