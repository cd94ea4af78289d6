package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement/ledger"
)

// watchWatchdog adds what the watchdog counts, and how many leaks are open.
func (m *metrics) watchWatchdog(s *consumers.WatchdogStats, book *ledger.Store) {
	m.registry.MustRegister(
		counter("headroom_watchdog_stopped_total", "Executions that the watchdog told to stop because they ran too long.", "", "", s.Told),
		counter("headroom_leases_leaked_total", "Leases that were found to have ended without a completion.", "", "", s.Leaked),
		counter("headroom_leases_extended_total", "Leases that turned out to run on when the ledger had them end.", "", "", s.Extended),
		&leakCollector{book: book, open: prometheus.NewDesc("headroom_leases_leaked",
			"Leases that ended without a completion to this day, 100000 standing for that many or more. None of them holds a slot.", nil, nil)},
	)
}

// leakCollector asks the database at each scrape. While that is away there is no such
// metric.
type leakCollector struct {
	book *ledger.Store
	open *prometheus.Desc
}

// Describe is that of prometheus.Collector.
func (c *leakCollector) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- c.open }

// Collect is that of prometheus.Collector.
func (c *leakCollector) Collect(found chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	n, err := c.book.CountLeaks(ctx)
	if err != nil {
		return
	}
	found <- prometheus.MustNewConstMetric(c.open, prometheus.GaugeValue, float64(n))
}
