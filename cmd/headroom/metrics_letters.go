package main

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/headroomhq/headroom/schemas"
)

// watchDeadLetters adds how many messages were given up and wait for a person; once.
func (m *metrics) watchDeadLetters(js jetstream.JetStream, topology schemas.Topology) {
	m.registry.MustRegister(&lettersCollector{
		js: js, stream: topology.Stream(schemas.StreamDeadLetters),
		letters: prometheus.NewDesc("headroom_deadletters", "Messages that were given up and neither replayed nor dropped.", nil, nil),
		oldest:  prometheus.NewDesc("headroom_deadletters_oldest_seconds", "How long ago the oldest of them was given up; 0 without any.", nil, nil),
	})
}

// lettersCollector asks NATS at each scrape. While that is away there are no such
// metrics. All instances tell the same: take the greatest, not the sum.
type lettersCollector struct {
	js              jetstream.JetStream
	stream          string
	letters, oldest *prometheus.Desc
}

// Describe is that of prometheus.Collector.
func (c *lettersCollector) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- c.letters
	descriptions <- c.oldest
}

// Collect is that of prometheus.Collector.
func (c *lettersCollector) Collect(found chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	stream, err := c.js.Stream(ctx, c.stream)
	if err != nil {
		return
	}
	age := 0.0
	state := stream.CachedInfo().State
	if state.Msgs > 0 {
		age = max(time.Since(state.FirstTime), 0).Seconds()
	}
	found <- prometheus.MustNewConstMetric(c.letters, prometheus.GaugeValue, float64(state.Msgs))
	found <- prometheus.MustNewConstMetric(c.oldest, prometheus.GaugeValue, age)
}
