package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/subscriptions"
)

// scrapePatience bounds a question to the database for the sake of a metric.
const scrapePatience = time.Second

// metrics is what GET /metrics tells. No metric names a workspace: there may be
// hundreds of thousands.
type metrics struct {
	registry *prometheus.Registry
	// invalidation is how long after an event, by the publisher's clock, this
	// process's plan cache knew it. The event's time is when its transaction began
	// on Postgres, so the rest of the transaction and the difference of the two
	// clocks are in it; less than nothing counts as nothing.
	invalidation prometheus.Histogram
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		invalidation: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "headroom_plan_invalidation_seconds",
			Help:    "From the transaction that changed a plan to this instance's plan cache.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 600},
		}),
	}
	m.registry.MustRegister(m.invalidation, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// applied observes one invalidation.
func (m *metrics) applied(after time.Duration) { m.invalidation.Observe(after.Seconds()) }

// parts are what a running service counts.
type parts struct {
	plans  *client.Plans
	work   *consumers.Consumers
	doors  *api.Executions
	relay  *consumers.Relay
	outbox *subscriptions.Outbox

	watchdog *consumers.Watchdog
	book     *ledger.Store
}

// watch adds the counts of the service's parts; once.
func (m *metrics) watch(p parts) {
	m.watchPlans(p.plans)
	m.watchRelay(p.relay, p.outbox)
	m.watchConsumers(p.work.Stats())
	m.watchDoors(p.doors.Stats())
	m.watchWatchdog(p.watchdog.Stats(), p.book)
}

func (m *metrics) watchPlans(plans *client.Plans) {
	count := func(of func(subscriptions.CacheStats) int64) func() int64 {
		return func() int64 { return of(plans.Stats()) }
	}
	lookups := "Lookups of the plan cache: a hit is answered from memory, a miss read or refused, a stale one answered beyond its time because Postgres is away."
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "headroom_plan_cache_entries", Help: "Workspaces that the plan cache holds, current or not.",
		}, func() float64 { return float64(plans.Stats().Entries) }),
		counter("headroom_plan_cache_lookups_total", lookups, "result", "hit", count(func(s subscriptions.CacheStats) int64 { return s.Hits })),
		counter("headroom_plan_cache_lookups_total", lookups, "result", "miss", count(func(s subscriptions.CacheStats) int64 { return s.Misses })),
		counter("headroom_plan_cache_lookups_total", lookups, "result", "stale", count(func(s subscriptions.CacheStats) int64 { return s.Stale })),
		counter("headroom_plan_cache_load_failures_total", "Readings of a plan that failed.", "", "",
			count(func(s subscriptions.CacheStats) int64 { return s.Failed })),
		counter("headroom_plan_cache_expiries_total", "How often all cached plans were given up: a new catalog, or news that may have been missed.", "", "",
			count(func(s subscriptions.CacheStats) int64 { return s.Expiries })),
	)
}

func (m *metrics) watchRelay(relay *consumers.Relay, outbox *subscriptions.Outbox) {
	s := relay.Stats()
	broadcast := "Invalidations for the Redis channel."
	m.registry.MustRegister(
		counter("headroom_relay_published_total", "News of the outbox that the streams took.", "", "", s.Published),
		counter("headroom_relay_failures_total", "Failed attempts to publish news; they are tried again.", "", "", s.Failed),
		counter("headroom_relay_broadcast_total", broadcast, "result", "sent", s.Broadcast),
		counter("headroom_relay_broadcast_total", broadcast, "result", "lost", s.Unheard),
		newOutboxCollector(outbox),
	)
}

func (m *metrics) watchConsumers(s *consumers.Stats) {
	messages := "Deliveries of messages, by what became of them."
	decisions := "Decisions published."
	m.registry.MustRegister(
		counter("headroom_messages_total", messages, "outcome", "acknowledged", s.Acknowledged),
		counter("headroom_messages_total", messages, "outcome", "deferred", s.Deferred),
		counter("headroom_messages_total", messages, "outcome", "retried", s.Retried),
		counter("headroom_messages_total", messages, "outcome", "dead_lettered", s.DeadLettered),
		counter("headroom_decisions_total", decisions, "result", "allowed", s.Allowed),
		counter("headroom_decisions_total", decisions, "result", "denied", s.Denied),
		counter("headroom_decisions_unavailable_total", "Those of the denials that are a 9008.", "", "", s.Unavailable),
		counter("headroom_decisions_repeated_total", "Decisions that the stream had already.", "", "", s.Repeated),
		counter("headroom_denials_withdrawn_total", "Published 9008 denials that were put on record in Redis.", "", "", s.Withdrawn),
		counter("headroom_contradictions_total", "Completions whose outcome contradicts an earlier one.", "", "", s.Contradictions),
		counter("headroom_ledger_folded_total", "Messages folded into the ledger.", "", "", s.Folded),
	)
}

// counter is a count that rises elsewhere, with one label or none.
func counter(name, help, label, value string, count func() int64) prometheus.Collector {
	o := prometheus.CounterOpts{Name: name, Help: help}
	if label != "" {
		o.ConstLabels = prometheus.Labels{label: value}
	}
	return prometheus.NewCounterFunc(o, func() float64 { return float64(count()) })
}

// handler serves GET /metrics: on a loopback address to everybody, on another to the
// tokens that may read.
func (m *metrics) handler(addr string, tokens api.Tokens, log *slog.Logger) http.Handler {
	handler := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
	})
	if isLoopback(addr) {
		return handler
	}
	return tokens.Require(api.ScopeRead, handler)
}

// isLoopback reports whether only this machine can reach an address.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// outboxCollector asks the database at each scrape. While that is away there is
// no such metric.
type outboxCollector struct {
	outbox          *subscriptions.Outbox
	waiting, oldest *prometheus.Desc
}

func newOutboxCollector(outbox *subscriptions.Outbox) *outboxCollector {
	return &outboxCollector{
		outbox:  outbox,
		waiting: prometheus.NewDesc("headroom_outbox_waiting", "News that are not published yet.", nil, nil),
		oldest:  prometheus.NewDesc("headroom_outbox_oldest_seconds", "How long the oldest of them has waited, by Postgres's clock; 0 without any.", nil, nil),
	}
}

// Describe is that of prometheus.Collector.
func (c *outboxCollector) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- c.waiting
	descriptions <- c.oldest
}

// Collect is that of prometheus.Collector.
func (c *outboxCollector) Collect(found chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	w, err := c.outbox.Waiting(ctx)
	if err != nil {
		return
	}
	found <- prometheus.MustNewConstMetric(c.waiting, prometheus.GaugeValue, float64(w.News))
	found <- prometheus.MustNewConstMetric(c.oldest, prometheus.GaugeValue, w.Oldest.Seconds())
}
