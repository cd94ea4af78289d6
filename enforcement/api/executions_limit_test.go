package api_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

func ptr[T any](v T) *T { return &v }

// crowd asks for n executions at once, at the doors by turns, and counts the codes.
func (h *house) crowd(n int, doors ...*api.Executions) map[int]int {
	h.Helper()
	codes := map[int]int{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			d, err := doors[i%len(doors)].Admit(h.Context(), asking(fmt.Sprintf("x%d", i), fmt.Sprintf("e%d", i)))
			if err != nil {
				h.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			codes[d.Code]++
		})
	}
	wait.Wait()
	return codes
}

func TestFourDoorsNeverPassALimit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limits schemas.Limits
		want   map[int]int
	}{
		"quota":       {limits(ptr[int64](100), nil), map[int]int{0: 100, 9001: 900}},
		"concurrency": {limits(nil, ptr[int64](3)), map[int]int{0: 3, 9002: 997}},
		"no room":     {limits(ptr[int64](0), nil), map[int]int{9001: 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, test.limits)
			got := h.crowd(1000, h.Executions, h.another(), h.another(), h.another())
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("answers by code (-want +got):\n%s", diff)
			}
			stored := h.decisions()
			if n := allows(stored); len(stored) != 1000 || n != test.want[0] {
				t.Errorf("the stream has %d decisions that admit %d, want 1000 and %d", len(stored), n, test.want[0])
			}
			if got := h.outstanding(); got.Running != int64(test.want[0]) || got.Used != int64(test.want[0]) {
				t.Errorf("%d run and %d are used, want %d of both", got.Running, got.Used, test.want[0])
			}
		})
	}
}

func TestCallersOfOneMomentShareABatch(t *testing.T) {
	t.Parallel()
	gate := newGate()
	h := newHouse(t, limits(nil, nil), func(o *api.ExecutionsOptions) { o.Flights = 1; gate.guard(o) })
	var wait sync.WaitGroup
	wait.Go(func() { h.admit("first", "e") })
	gate.reached(t)
	for i := range 100 {
		wait.Go(func() { h.admit(fmt.Sprintf("x%d", i), "e") })
	}
	h.eventually("all wait", func() bool { return h.Waiting() == 101 })
	gate.open()
	wait.Wait()
	if s := h.Stats(); s.Batches() != 2 || s.Batched() != 101 || s.Allowed() != 101 || s.Waited() <= 0 {
		t.Errorf("%d batches of %d questions, %d allowed, waited %s; want 2 batches of 101", s.Batches(), s.Batched(), s.Allowed(), s.Waited())
	}
}

func TestOneExecutionAskedTwiceTakesOneSlot(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(ptr[int64](10), ptr[int64](1)))
	other := h.another()
	answers := make([]schemas.DecisionMade, 40)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() {
			door := h.Executions
			if i%2 == 1 {
				door = other
			}
			var err error
			if answers[i], err = door.Admit(t.Context(), asking("same", fmt.Sprintf("e%d", i%4))); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for i, d := range answers {
		if !d.Admits() || d.Used != 1 || d.Concurrent != 1 || !d.LeaseExpiresAt.Equal(*answers[0].LeaseExpiresAt) {
			t.Errorf("answer %d is %d, used %d, at once %d until %s; want one and the same allow", i, d.Code, d.Used, d.Concurrent, d.LeaseExpiresAt)
		}
		if diff := cmp.Diff(answers[i%4], d, cmpopts.EquateComparable(schemas.Limit{})); diff != "" {
			t.Errorf("answers to one event differ (-%d +%d):\n%s", i%4, i, diff)
		}
	}
	if got := h.outstanding(); got.Running != 1 || got.Used != 1 {
		t.Errorf("%d run, %d are used, want 1 of both", got.Running, got.Used)
	}
	if stored := h.decisions(); len(stored) != 4 || allows(stored) != 1 {
		t.Errorf("the stream has %d decisions that admit %d executions, want one for each of 4 events, of 1", len(stored), allows(stored))
	}
}

func TestForgottenScriptsAreNoOutage(t *testing.T) {
	t.Parallel()
	client := dial(t, schematest.RedisServer(t).URL())
	h := houseOver(t, client, limits(ptr[int64](50), nil))
	flushed := make(chan struct{})
	go func() {
		defer close(flushed)
		for range 20 {
			if err := client.ScriptFlush(t.Context()).Err(); err != nil {
				t.Error(err)
			}
		}
	}()
	got := h.crowd(500, h.Executions)
	<-flushed
	if diff := cmp.Diff(map[int]int{0: 50, 9001: 450}, got); diff != "" {
		t.Errorf("answers by code (-want +got):\n%s", diff)
	}
}

func dial(t testing.TB, address string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	options.ContextTimeoutEnabled, options.MaxRetries = true, 1
	options.DialTimeout, options.DialerRetries = time.Second, 1
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestAWrongRequestIsRefusedBeforeItIsAsked(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(nil, nil))
	for field, change := range map[string]func(*enforcement.Request){
		"workspace_id":    func(r *enforcement.Request) { r.WorkspaceID = "w.s" },
		"execution_id":    func(r *enforcement.Request) { r.ExecutionID = "" },
		"payload_bytes":   func(r *enforcement.Request) { r.PayloadBytes = -1 },
		"Idempotency-Key": func(r *enforcement.Request) { r.EventID = "a\x00b" },
	} {
		r := asking("x", "e")
		change(&r)
		_, err := h.Admit(t.Context(), r)
		var wrong *usage.InvalidArgument
		if !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v, want an error that names it", field, err)
		}
	}
	for name, err := range map[string]error{
		"progress": faultOf(h.Progress(t.Context(), enforcement.Progress{WorkspaceID: "ws", ExecutionID: "x", EventID: "e", EventSource: "s", Tasks: ptr[int64](-1)})),
		"complete": faultOf(h.Complete(t.Context(), enforcement.Completion{WorkspaceID: "ws", ExecutionID: "x", Outcome: "won"}, nil, "")),
		"tasks":    faultOf(h.Complete(t.Context(), enforcement.Completion{WorkspaceID: "ws", ExecutionID: "x", Outcome: "failed"}, ptr[int64](-1), "")),
	} {
		var wrong *usage.InvalidArgument
		if !errors.As(err, &wrong) {
			t.Errorf("%s: %v, want an invalid argument", name, err)
		}
	}
	if s := h.Stats(); s.Batched() != 0 {
		t.Errorf("%d questions were asked", s.Batched())
	}
}

func faultOf[T any](_ T, err error) error { return err }

func TestAWorkspaceWithoutAPlanHearsAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(nil, nil))
	for _, want := range []error{subscriptions.ErrNotEntitled, subscriptions.ErrNoDefaultPlan} {
		h.plans.fail(want)
		begun := time.Now()
		if _, err := h.Admit(t.Context(), asking("x", "e")); !errors.Is(err, want) || errors.Is(err, enforcement.ErrUnavailable) {
			t.Errorf("%v, want %v alone", err, want)
		}
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("heard after %s", took)
		}
	}
	if n := len(h.decisions()); n != 0 {
		t.Errorf("%d decisions were published", n)
	}
}
