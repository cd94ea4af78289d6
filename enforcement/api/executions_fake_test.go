package api_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/schemas"
)

// gate holds the first batch of decisions before they are written until it is opened.
type gate struct {
	arrived chan struct{}
	opened  chan struct{}
	once    sync.Once
}

func newGate() *gate { return &gate{arrived: make(chan struct{}, 1), opened: make(chan struct{})} }

// guard puts the gate before the decisions of a door.
func (g *gate) guard(o *api.ExecutionsOptions) {
	o.Decisions = gatedWriter{gate: g, inner: o.Decisions}
}

func (g *gate) reached(t testing.TB) {
	t.Helper()
	select {
	case <-g.arrived:
	case <-time.After(patience):
		t.Fatal("nothing came to the gate")
	}
}

func (g *gate) open() { close(g.opened) }

type decisionWriter interface {
	Write(ctx context.Context, decisions []schemas.OutgoingDecision) []schemas.WrittenDecision
}

type gatedWriter struct {
	gate  *gate
	inner decisionWriter
}

func (w gatedWriter) Write(ctx context.Context, decisions []schemas.OutgoingDecision) []schemas.WrittenDecision {
	w.gate.once.Do(func() {
		w.gate.arrived <- struct{}{}
		<-w.gate.opened
	})
	return w.inner.Write(ctx, decisions)
}

// disturbed is an enforcer before whose answers to admissions something happens.
type disturbed struct {
	api.Enforcer

	before func(requests []enforcement.Request)
}

func (d disturbed) Admit(ctx context.Context, requests []enforcement.Request) []enforcement.Result {
	results := d.Enforcer.Admit(ctx, requests)
	d.before(requests)
	return results
}

// hand is a clock that a test moves.
type hand struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (h *hand) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Add(h.ahead)
}

func (h *hand) move(by time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ahead += by
}
