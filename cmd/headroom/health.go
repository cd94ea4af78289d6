package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// checkTimeout bounds each check of /readyz.
	checkTimeout = time.Second
	// startGlance is how often health.watch looks until everything was ready once,
	// and readyGlance how often from then on.
	startGlance = 50 * time.Millisecond
	readyGlance = time.Second
)

// part is something that readiness depends on. Until use gives it a check it is
// not ready, for the reason last told to fail.
type part struct {
	name string
	// advisory parts are told of in /readyz and do not decide it.
	advisory bool

	mu    sync.Mutex
	check func(context.Context) error
	fault error
}

// fail tells why the part is not ready while it has no check.
func (p *part) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = err
}

// use makes check decide from here on.
func (p *part) use(check func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.check = check
}

// ready is nil or why the part cannot work. It answers within checkTimeout even
// when the check does not.
func (p *part) ready(ctx context.Context) error {
	p.mu.Lock()
	check, fault := p.check, p.fault
	p.mu.Unlock()
	if check == nil {
		return fault
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- check(ctx) }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return errors.New("no answer within " + checkTimeout.String())
	}
}

// health answers whether this process lives and whether it can decide.
type health struct {
	nats, redis, postgres, consumers, catalog part
	// stripe has no name where Stripe is not followed.
	stripe   part
	draining atomic.Bool
}

func newHealth() *health {
	starting := errors.New("not started yet")
	return &health{
		nats:      part{name: "nats", fault: starting},
		redis:     part{name: "redis", fault: starting},
		postgres:  part{name: "postgres", fault: starting},
		consumers: part{name: "consumers", fault: starting},
		// Whether there is a plan to decide by is the operator's business, and needs
		// a running Headroom: it must not keep one from being called ready.
		catalog: part{name: "catalog", advisory: true, fault: starting},
	}
}

// followStripe has readiness tell of look-ups that are late. They keep nobody from being
// decided about.
func (h *health) followStripe() {
	h.stripe.name, h.stripe.advisory = "stripe", true
	h.stripe.fail(errors.New("not started yet"))
}

// readiness is the body of /readyz.
type readiness struct {
	Status string           `json:"status"`
	Checks map[string]check `json:"checks"`
}

// check is one part of readiness; Error is empty when it is OK.
type check struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

// What readiness.Status may be.
const (
	statusReady    = "ready"
	statusNotReady = "not_ready"
	statusDraining = "draining"
)

// read runs all checks at once.
func (h *health) read(ctx context.Context) readiness {
	parts := []*part{&h.nats, &h.redis, &h.postgres, &h.consumers, &h.catalog}
	if h.stripe.name != "" {
		parts = append(parts, &h.stripe)
	}
	faults := make([]error, len(parts))
	var wait sync.WaitGroup
	for i, p := range parts {
		wait.Go(func() { faults[i] = p.ready(ctx) })
	}
	wait.Wait()
	result := readiness{Status: statusReady, Checks: make(map[string]check, len(parts))}
	for i, p := range parts {
		c := check{OK: faults[i] == nil}
		if !c.OK {
			c.Error = faults[i].Error()
		}
		if !c.OK && !p.advisory {
			result.Status = statusNotReady
		}
		result.Checks[p.name] = c
	}
	if h.draining.Load() {
		result.Status = statusDraining
	}
	return result
}

// watch logs when everything is ready for the first time, calls ready then, and
// from then on logs each part that stops or begins again to be ready. It returns
// when ctx ends.
func (h *health) watch(ctx context.Context, log *slog.Logger, ready func()) {
	pace := time.NewTicker(startGlance)
	defer pace.Stop()
	var before map[string]check // nil until everything was ready once
	for {
		now := h.read(ctx)
		switch {
		case ctx.Err() != nil || now.Status == statusDraining:
			return
		case before != nil:
			h.logChanges(log, before, now.Checks)
			before = now.Checks
		case now.Status == statusReady:
			log.Info("ready")
			ready()
			before = now.Checks
			pace.Reset(readyGlance)
		}
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
	}
}

// logChanges tells of services; of the catalog the plan cache tells, of Stripe its worker.
func (h *health) logChanges(log *slog.Logger, before, now map[string]check) {
	for _, name := range sortedKeys(now) {
		switch is := now[name]; {
		case is.OK == before[name].OK || name == h.catalog.name || name == h.stripe.name:
		case is.OK:
			log.Info("service is back", "service", name)
		default:
			log.Warn("service is lost", "service", name, "error", is.Error)
		}
	}
}

// handler serves GET /healthz, 200 for as long as the process answers, and
// GET /readyz, 200 while NATS, Redis, Postgres and the consumers are there and
// 503 with the reasons when not.
func (h *health) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "alive"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		result := h.read(r.Context())
		status := http.StatusOK
		if result.Status != statusReady {
			status = http.StatusServiceUnavailable
		}
		writeJSON(w, status, result)
	})
	return mux
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the reader is gone: nobody is left to tell
}
