package proof_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

const flips = 100

// one asks an instance for one execution.
func (i *instance) one(t *testing.T, ws, execution string) schemas.DecisionMade {
	t.Helper()
	got := i.enforcer.Admit(t.Context(), []enforcement.Request{{WorkspaceID: ws, ExecutionID: execution, EventID: "1", EventSource: "test"}})[0]
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	return got.Decision
}

func (h *house) follow(state subscriptions.SourceState) subscriptions.Subscription {
	h.Helper()
	row, err := h.store.Follow(context.Background(), state, "test")
	if err != nil {
		h.Fatal(err)
	}
	return row
}

func TestABlockedWorkspaceIsAdmittedAtTheNextRequestAfterItsUpgrade(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{key: "small", quota: 10}, plan{key: "large", quota: 30})
	h.assign(subscriptions.Assignment{WorkspaceID: "ws", PlanKey: "small"})
	all := []*instance{h.start(), h.start()}
	load := h.ask(8, "ws")
	load.until(40, "ws is refused", func(d schemas.DecisionMade) bool { return d.Code == enforcement.CodeExecutionQuota })
	load.halt()
	committed := time.Now()
	h.assign(subscriptions.Assignment{WorkspaceID: "ws", PlanKey: "large"})
	h.broadcast("ws", all)
	t.Logf("both instances had heard of it %s after the assignment began", time.Since(committed))
	before := len(h.decisions())
	h.publish(h.topology.Requested("ws"), encode(t, "next", schemas.ExecutionRequested{WorkspaceID: "ws", ExecutionID: "next"}))
	h.eventually("the next request is decided", func() bool { return len(h.decisions()) > before })
	if d := h.decisions()[before]; !d.Allowed || d.Used != 11 || d.PlanKey != "large" {
		t.Errorf("%+v, want it to be allowed, the eleventh of the period", d)
	}
}

func TestFlippingPlansNeverYieldsAFreshQuota(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{key: "small", quota: 10}, plan{key: "large", quota: 30})
	all := []*instance{h.start(), h.start()}
	for name, flip := range map[string]func(n int, key string) subscriptions.Subscription{
		"assigned": func(_ int, key string) subscriptions.Subscription {
			return h.assign(subscriptions.Assignment{WorkspaceID: "assigned", PlanKey: key})
		},
		"followed": h.flipped,
	} {
		epoch, allowed := "", int64(0)
		for n := range flips {
			key := []string{"small", "large"}[n%2]
			row := flip(n, key)
			if epoch == "" {
				epoch = row.UsageEpoch
			}
			if row.UsageEpoch != epoch {
				t.Fatalf("%s: flip %d, of kind %s, began a quota of its own", name, n, row.Kind)
			}
			h.broadcast(name, all)
			d := all[n%2].one(t, name, fmt.Sprintf("x%d", n))
			limit := map[string]int64{"small": 10, "large": 30}[key]
			if want := allowed < limit; d.Allowed != want || d.PlanKey != key {
				t.Fatalf("%s: flip %d to %s with %d in use: %+v, want allowed %v", name, n, key, allowed, d, want)
			}
			if d.Allowed {
				allowed++
			}
			if d.Used != allowed {
				t.Fatalf("%s: flip %d: used %d, want %d carried over", name, n, d.Used, allowed)
			}
		}
		if allowed != 30 {
			t.Errorf("%s: %d executions were allowed, want the larger quota once", name, allowed)
		}
	}
	h.cycle(all)
}

// started is when the first period of workspace "followed" begins.
var started = time.Now().UTC().Add(-time.Hour).Truncate(time.Second)

// stripe is what a billing service says of workspace "followed" after n changes.
func stripe(n int, key string) subscriptions.SourceState {
	return subscriptions.SourceState{
		WorkspaceID: "followed", Key: subscriptions.SubscriptionKey{Source: subscriptions.SourceStripe, Livemode: true, SourceID: "sub_1"},
		Status: subscriptions.StatusActive, PaymentState: subscriptions.PaymentPaid, PlanKey: key, Quantity: 1,
		Period: subscriptions.Period{Start: started.Add(time.Duration(n) * time.Second), End: started.AddDate(0, 1, 0)},
	}
}

// flipped changes the plan as a source does that moves the anchor with it: an early period,
// and then one more on the same plan, whose anchor alone is moved.
func (h *house) flipped(n int, key string) subscriptions.Subscription {
	h.Helper()
	want := subscriptions.KindPlanChange
	if n == 0 {
		want = subscriptions.KindCreated
	}
	if row := h.follow(stripe(2*n, key)); row.Kind != want {
		h.Fatalf("kind %s, want %s", row.Kind, want)
	}
	row := h.follow(stripe(2*n+1, key))
	if row.Kind != subscriptions.KindAnchorReset {
		h.Fatalf("kind %s, want %s", row.Kind, subscriptions.KindAnchorReset)
	}
	return row
}

// cycle lets the period of "followed" be over, and the next one begin in its time.
func (h *house) cycle(all []*instance) {
	h.Helper()
	last := stripe(2*flips-1, "large")
	last.Period.End = last.Period.Start.Add(time.Minute)
	h.follow(last)
	next := stripe(0, "large")
	next.Period.Start = last.Period.End
	row := h.follow(next)
	h.broadcast("followed", all)
	got := all[0].enforcer.Admit(context.Background(), []enforcement.Request{{WorkspaceID: "followed", ExecutionID: "cycle", EventID: "1", EventSource: "test"}})[0]
	if row.Kind != subscriptions.KindCycle || got.Err != nil || !got.Decision.Allowed || got.Decision.Used != 1 {
		h.Errorf("kind %s, %+v, want a cycle with a fresh quota", row.Kind, got)
	}
}
