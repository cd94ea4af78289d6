package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// scrape reads /metrics as Prometheus does.
func (s *serving) scrape() map[string]*dto.MetricFamily {
	s.t.Helper()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + s.addr + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("/metrics answers %d, %v", response.StatusCode, err)
	}
	return families
}

// sum adds up a family's values, of a histogram its count.
func sum(family *dto.MetricFamily) (total float64) {
	for _, m := range family.GetMetric() {
		total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return total
}

func TestMetricsTellWhatWasDone(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	i.decide(i.jetStream(), "ws_metrics", "e1")
	i.must("workspaces", "assign", "ws_metrics", "--plan", "pro")

	deadline := time.After(patience)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	families := s.scrape()
	// The relay marks news only after they were heard.
	for sum(families["headroom_plan_invalidation_seconds"]) == 0 || sum(families["headroom_relay_published_total"]) < 2 {
		select {
		case <-again.C:
			families = s.scrape()
		case <-deadline:
			t.Fatal("no invalidation, or no news, were counted")
		}
	}
	for name, want := range map[string]float64{
		"headroom_plan_invalidation_seconds":      1,
		"headroom_decisions_total":                1,
		"headroom_relay_failures_total":           0,
		"headroom_relay_broadcast_total":          0,
		"headroom_decisions_unavailable_total":    0,
		"headroom_plan_cache_load_failures_total": 0,
		"headroom_outbox_waiting":                 0,
	} {
		if family := families[name]; family == nil || sum(family) != want {
			t.Errorf("%s is %v, want %v", name, family, want)
		}
	}
	for _, name := range []string{
		"headroom_plan_cache_lookups_total", "headroom_plan_cache_expiries_total", "headroom_messages_total",
		"headroom_relay_published_total", "go_goroutines", "process_cpu_seconds_total",
	} {
		if sum(families[name]) == 0 {
			t.Errorf("%s is missing or 0", name)
		}
	}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if strings.HasPrefix(name, "headroom_") && strings.Contains(label.GetValue(), "ws_") {
					t.Errorf("%s names a workspace", name)
				}
			}
		}
	}
}

func TestMetricsAreOpenOnThisMachineAlone(t *testing.T) {
	t.Parallel()
	tokens, err := api.ParseTokens("prometheus:0123456789abcdef:read,engine:fedcba9876543210:execute")
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]int{
		"127.0.0.1:8080": http.StatusOK, "localhost:0": http.StatusOK, "[::1]:8080": http.StatusOK, "127.9.9.9:1": http.StatusOK,
		"0.0.0.0:8080": http.StatusUnauthorized, ":8080": http.StatusUnauthorized, "[::]:8080": http.StatusUnauthorized,
		"192.0.2.1:8080": http.StatusUnauthorized, "example.com:8080": http.StatusUnauthorized,
	} {
		handler := routesOf(t, newMetrics().handler(addr, tokens, schematest.Logger(t)))
		for token, want := range map[string]int{
			"": want, "0123456789abcdef": http.StatusOK, "fedcba9876543210": max(want, http.StatusOK),
		} {
			if token == "fedcba9876543210" && want != http.StatusOK {
				want = http.StatusForbidden
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, r)
			if answer.Code != want {
				t.Errorf("on %s with token %q /metrics answers %d %s, want %d", addr, token, answer.Code, answer.Body, want)
			}
		}
	}
}

func TestInvalidationsAreBroadcastOnRedis(t *testing.T) {
	t.Parallel()
	i := newInstallation(t).with(map[string]string{"HEADROOM_REDIS_INVALIDATION_CHANNEL": "test:" + t.Name()})
	i.must("plans", "apply", demoCatalog)
	subscription := schematest.Redis(t).Subscribe(t.Context(), "test:"+t.Name())
	defer func() { _ = subscription.Close() }()
	if _, err := subscription.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	i.must("workspaces", "assign", "ws_cast", "--plan", "pro")
	select {
	case m := <-subscription.Channel():
		event, err := schemas.Decode[schemas.PlanInvalidated]("ws_cast", []byte(m.Payload))
		if err != nil || event.Data.PlanRevision != 1 {
			t.Errorf("%s was broadcast, %v", m.Payload, err)
		}
	case <-time.After(patience):
		t.Fatal("nothing was broadcast")
	}
}
