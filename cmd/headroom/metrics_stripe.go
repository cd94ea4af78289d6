package main

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headroomhq/headroom/webhooks"
)

// watchStripe adds what follows Stripe counts; once.
func (m *metrics) watchStripe(p *stripeParts, door *stripeDoor) {
	m.watchDeliveries(door)
	m.watchLookups(p.worker)
	if p.api != nil {
		m.watchRepairs(p)
	}
	m.registry.MustRegister(newConcernsCollector(p.ledger))
}

func (m *metrics) watchDeliveries(door *stripeDoor) {
	const name, help = "headroom_stripe_deliveries_total", "Deliveries of Stripe's events, by the answer."
	results := map[int]string{
		http.StatusOK: "stored", http.StatusBadRequest: "bad_signature",
		http.StatusRequestEntityTooLarge: "too_large", http.StatusServiceUnavailable: "not_stored",
	}
	for status, result := range results {
		m.registry.MustRegister(counter(name, help, "result", result, door.counts[status].Load))
	}
	m.registry.MustRegister(counter(name, help, "result", "other", door.other.Load))
}

func (m *metrics) watchLookups(w *webhooks.Worker) {
	count := func(of func(webhooks.WorkerStats) int64) func() int64 {
		return func() int64 { return of(w.Stats()) }
	}
	lookups := "Look-ups of subscriptions that this instance settled, by where they looked."
	calls := "Calls of Stripe's API by this instance, by the answer."
	m.registry.MustRegister(
		counter("headroom_stripe_lookups_total", lookups, "source", "api", count(func(s webhooks.WorkerStats) int64 { return s.Fetched })),
		counter("headroom_stripe_lookups_total", lookups, "source", "payloads", count(func(s webhooks.WorkerStats) int64 { return s.Folded })),
		counter("headroom_stripe_lookup_retries_total", "Look-ups that failed and are tried again.", "", "", count(func(s webhooks.WorkerStats) int64 { return s.Retries })),
		counter("headroom_stripe_key_refused_total", "Look-ups that wait because Stripe refuses the API key.", "", "", count(func(s webhooks.WorkerStats) int64 { return s.Held })),
		counter("headroom_stripe_lookups_given_up_total", "Look-ups that wait for a person.", "state", "parked", count(func(s webhooks.WorkerStats) int64 { return s.Parked })),
		counter("headroom_stripe_lookups_given_up_total", "Look-ups that wait for a person.", "state", "dead", count(func(s webhooks.WorkerStats) int64 { return s.Dead })),
		counter("headroom_stripe_api_calls_total", calls, "result", "answered", count(func(s webhooks.WorkerStats) int64 {
			return s.API.Calls - s.API.Limited - s.API.Failed
		})),
		counter("headroom_stripe_api_calls_total", calls, "result", "rate_limited", count(func(s webhooks.WorkerStats) int64 { return s.API.Limited })),
		counter("headroom_stripe_api_calls_total", calls, "result", "failed", count(func(s webhooks.WorkerStats) int64 { return s.API.Failed })),
	)
}

func (m *metrics) watchRepairs(p *stripeParts) {
	const name, help = "headroom_stripe_repairs_total", "What this instance repaired because no event had told of it, by cause."
	for _, cause := range []string{webhooks.RepairMissing, webhooks.RepairChanged, webhooks.RepairOverdue} {
		m.registry.MustRegister(counter(name, help, "cause", cause, func() int64 { return p.sync.Stats().Repairs[cause] }))
	}
	const failed, failedHelp = "headroom_stripe_repair_failures_total", "Sweeps and comparisons that ended with an error; they go on later."
	m.registry.MustRegister(
		counter(name, help, "cause", "missing_event", func() int64 { return p.sweep.Stats().Repairs }),
		counter(failed, failedHelp, "loop", "sweep", func() int64 { return p.sweep.Stats().Failed }),
		counter(failed, failedHelp, "loop", "sync", func() int64 { return p.sync.Stats().Failed }),
	)
}

// concernsCollector asks the database at each scrape. While that is away there are no
// such metrics. All instances tell the same: take the greatest, not the sum.
type concernsCollector struct {
	ledger                               *webhooks.Ledger
	events, eventAge, backlog, backlogOf *prometheus.Desc
	waiting, unresolved, several, late   *prometheus.Desc
	disputed                             *prometheus.Desc
}

func newConcernsCollector(ledger *webhooks.Ledger) *concernsCollector {
	described := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("headroom_stripe_"+name, help, labels, nil)
	}
	return &concernsCollector{
		ledger:     ledger,
		events:     described("events", "Events that are not settled, by state.", "state"),
		eventAge:   described("events_oldest_seconds", "How long the oldest event in the state is known; 0 without any.", "state"),
		backlog:    described("lookups_waiting", "Look-ups of subscriptions that are asked for and not over."),
		backlogOf:  described("lookups_oldest_seconds", "How long the oldest of them was asked for; 0 without any."),
		waiting:    described("subscriptions_waiting", "Subscriptions that wait for a person, by why.", "state"),
		unresolved: described("plan_unresolved", "Open subscriptions none of whose prices is in the catalog."),
		several:    described("workspaces_several_subscriptions", "Workspaces with several live subscriptions of Stripe's, who may pay twice."),
		late:       described("subscriptions_overdue", "Open subscriptions whose period is over without news of the next one."),
		disputed:   described("subscriptions_disputed", "Open subscriptions whose money a dispute has withdrawn."),
	}
}

// Describe is that of prometheus.Collector.
func (c *concernsCollector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.events, c.eventAge, c.backlog, c.backlogOf, c.waiting, c.unresolved, c.several, c.late, c.disputed} {
		descriptions <- d
	}
}

// Collect is that of prometheus.Collector.
func (c *concernsCollector) Collect(found chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	is, err := c.ledger.Concerns(ctx, time.Now())
	if err != nil {
		return
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		found <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(c.events, float64(is.Received), webhooks.StateReceived)
	gauge(c.events, float64(is.Unmapped), webhooks.StateUnmapped)
	gauge(c.events, float64(is.Parked), webhooks.StateParked)
	gauge(c.events, float64(is.Dead), webhooks.StateDead)
	gauge(c.eventAge, is.OldestUnmapped.Seconds(), webhooks.StateUnmapped)
	gauge(c.eventAge, is.OldestParked.Seconds(), webhooks.StateParked)
	gauge(c.backlog, float64(is.Backlog))
	gauge(c.backlogOf, max(is.OldestBacklog, 0).Seconds())
	gauge(c.waiting, float64(is.UnmappedSubscriptions), webhooks.StateUnmapped)
	gauge(c.waiting, float64(is.ParkedSubscriptions), webhooks.StateParked)
	gauge(c.waiting, float64(is.DeadSubscriptions), webhooks.StateDead)
	gauge(c.unresolved, float64(is.Unresolved))
	gauge(c.several, float64(is.Several))
	gauge(c.late, float64(is.Overdue))
	gauge(c.disputed, float64(is.Disputed))
}
