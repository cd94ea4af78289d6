package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

func TestReadinessNamesWhatIsMissingAndWhy(t *testing.T) {
	t.Parallel()
	fine := func(context.Context) error { return nil }
	for name, test := range map[string]struct {
		arrange func(*health)
		status  int
		want    readiness
	}{
		"nothing was started": {
			func(*health) {}, http.StatusServiceUnavailable,
			readiness{"not_ready", map[string]check{
				"nats": {Error: "not started yet"}, "redis": {Error: "not started yet"},
				"postgres": {Error: "not started yet"}, "consumers": {Error: "not started yet"}, "catalog": {Error: "not started yet"},
			}},
		},
		"everything is there": {
			func(*health) {}, http.StatusOK,
			readiness{"ready", map[string]check{"nats": {OK: true}, "redis": {OK: true}, "postgres": {OK: true}, "consumers": {OK: true}, "catalog": {OK: true}}},
		},
		"one service went away": {
			func(h *health) { h.redis.use(func(context.Context) error { return errors.New("connection refused") }) },
			http.StatusServiceUnavailable,
			readiness{"not_ready", map[string]check{
				"nats": {OK: true}, "redis": {Error: "connection refused"}, "postgres": {OK: true}, "consumers": {OK: true}, "catalog": {OK: true},
			}},
		},
		"no catalog was applied": {
			func(h *health) { h.catalog.use(func(context.Context) error { return errors.New("no default plan") }) },
			http.StatusOK,
			readiness{"ready", map[string]check{
				"nats": {OK: true}, "redis": {OK: true}, "postgres": {OK: true}, "consumers": {OK: true}, "catalog": {Error: "no default plan"},
			}},
		},
		"asked to end": {
			func(h *health) { h.draining.Store(true) }, http.StatusServiceUnavailable,
			readiness{"draining", map[string]check{"nats": {OK: true}, "redis": {OK: true}, "postgres": {OK: true}, "consumers": {OK: true}, "catalog": {OK: true}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHealth()
			if name != "nothing was started" {
				for _, p := range []*part{&h.nats, &h.redis, &h.postgres, &h.consumers, &h.catalog} {
					p.use(fine)
				}
			}
			test.arrange(h)
			status, body := ask(t, h, "/readyz")
			var got readiness
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || status != test.status {
				t.Errorf("status %d, want %d; body differs (-want +got):\n%s", status, test.status, diff)
			}
			if status, _ := ask(t, h, "/healthz"); status != http.StatusOK {
				t.Errorf("/healthz answers %d: the process lives whatever it waits for", status)
			}
		})
	}
}

func TestReadinessAnswersWhenACheckDoesNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHealth()
		release := make(chan struct{})
		h.postgres.use(func(context.Context) error { <-release; return nil })
		got := h.read(t.Context()).Checks["postgres"]
		close(release)
		if want := (check{Error: "no answer within 1s"}); got != want {
			t.Errorf("check is %+v, want %+v", got, want)
		}
	})
}

func ask(t *testing.T, h *health, path string) (status int, body []byte) {
	t.Helper()
	recorder := httptest.NewRecorder()
	h.handler().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return recorder.Code, recorder.Body.Bytes()
}
