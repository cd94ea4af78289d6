package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headroomhq/headroom/webhooks"
)

const stripeDocs = "../../docs/stripe.md"

func TestTheDocsListTheEventsToSelect(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile(stripeDocs)
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, line := range strings.Split(string(body), "\n") {
		if regexp.MustCompile(`^   [a-z_]+(\.[a-z_]+)+$`).MatchString(line) {
			listed = append(listed, strings.TrimSpace(line))
		}
	}
	if !slices.Equal(listed, webhooks.EventTypes()) {
		t.Errorf("docs/stripe.md lists %v, want %v", listed, webhooks.EventTypes())
	}
}

func TestTheDocsNameEachMetricOfStripe(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile(stripeDocs)
	if err != nil {
		t.Fatal(err)
	}
	api, err := webhooks.NewAPI(webhooks.APIOptions{Key: "sk_live_1", URL: "http://127.0.0.1:9"})
	if err != nil {
		t.Fatal(err)
	}
	parts := &stripeParts{api: api, worker: webhooks.NewWorker(webhooks.WorkerOptions{})}
	m := newMetrics()
	registered := make(chan *prometheus.Desc, 100)
	m.watchStripe(parts, newStripeDoor(Config{}))
	m.registry.Describe(registered)
	close(registered)
	name := regexp.MustCompile(`fqName: "(headroom_stripe_[a-z_]+)"`)
	n := 0
	for d := range registered {
		if found := name.FindStringSubmatch(d.String()); found != nil {
			n++
			if !strings.Contains(string(body), "`"+found[1]) {
				t.Errorf("docs/stripe.md does not name %s", found[1])
			}
		}
	}
	if n < 15 {
		t.Errorf("%d metrics are registered", n)
	}
}
