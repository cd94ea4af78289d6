package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/schemas"
)

// read runs Decisions until the returned function is called.
func read(t *testing.T, c *client.Client, handle func(context.Context, schemas.DecisionMade) error) (end func()) {
	t.Helper()
	decisions, err := c.OpenDecisions(t.Context(), client.DecisionsOptions{Durable: "engine", Workspace: "ws"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- decisions.Run(ctx, handle) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	}
}

func receive(t *testing.T, from <-chan schemas.DecisionMade) schemas.DecisionMade {
	t.Helper()
	select {
	case d := <-from:
		return d
	case <-time.After(patience):
		t.Fatal("no decision came")
		return schemas.DecisionMade{}
	}
}

func TestAnEngineReadsItsDecisionsFromTheStream(t *testing.T) {
	t.Parallel()
	h := newHeadroom(t, limits(func(l *schemas.Limits) { l.MaxExecutions = schemas.LimitOf(3) }), time.Hour)
	c := engine(t, nil)
	heard := make(chan schemas.DecisionMade, 10)
	failed := false
	end := read(t, c, func(_ context.Context, d schemas.DecisionMade) error {
		if !failed {
			failed = true
			return errors.New("not now")
		}
		heard <- d
		return nil
	})
	event, err := c.Request(t.Context(), execution("e1"))
	if err != nil {
		t.Fatal(err)
	}
	d := receive(t, heard) // the second delivery: the first one's handler failed
	if d.RequestEventID != event || !d.Allowed {
		t.Errorf("the decision is %+v", d)
	}
	run, err := c.RunOf(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Complete(t.Context(), schemas.OutcomeSucceeded); err != nil {
		t.Fatal(err)
	}
	// What is no decision holds nothing up.
	if _, err := h.js.Publish(t.Context(), schemas.Topology{}.Decision("ws"), []byte("{")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Request(t.Context(), execution("e2")); err != nil {
		t.Fatal(err)
	}
	if d := receive(t, heard); d.ExecutionID != "e2" {
		t.Errorf("then came %+v", d)
	}
	end()

	// What is decided meanwhile waits, and only that.
	for _, id := range []string{"e3", "e4"} {
		if _, err := c.Request(t.Context(), execution(id)); err != nil {
			t.Fatal(err)
		}
	}
	h.awaitRequests(4)
	end = read(t, c, func(_ context.Context, d schemas.DecisionMade) error { heard <- d; return nil })
	defer end()
	if d := receive(t, heard); d.ExecutionID != "e3" {
		t.Errorf("after the pause came %+v", d)
	}
	_, err = c.RunOf(receive(t, heard))
	if d := deniedBy(t, err); d.Code != 9001 || d.Decision.ExecutionID != "e4" {
		t.Errorf("the run of a denial is %v", err)
	}
}

func TestADurableNeedsAName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "a.b", "a b", ">"} {
		if _, err := engine(t, nil).OpenDecisions(t.Context(), client.DecisionsOptions{Durable: name}); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
}

func TestARuntimeDecisionIsNoRun(t *testing.T) {
	t.Parallel()
	if _, err := engine(t, nil).RunOf(schemas.DecisionMade{Kind: schemas.KindRuntime, Allowed: true}); err == nil {
		t.Error("it was taken for one")
	}
}
