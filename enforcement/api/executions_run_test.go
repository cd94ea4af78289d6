package api_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func over(execution string, outcome schemas.Outcome) enforcement.Completion {
	return enforcement.Completion{WorkspaceID: "ws", ExecutionID: execution, Outcome: outcome}
}

func TestProgressIsHeldAgainstTheLimits(t *testing.T) {
	t.Parallel()
	bounds := limits(nil, nil)
	bounds.MaxTasksPerExecution = schemas.LimitOf(5)
	h := newHouse(t, bounds)
	admitted := h.admit("x", "e")
	step := enforcement.Progress{WorkspaceID: "ws", ExecutionID: "x", EventID: "p1", EventSource: "test", Tasks: ptr[int64](5)}
	x, err := h.Progress(t.Context(), step)
	if err != nil || !x.Live || x.Decision != nil || x.LeaseExpiresAt.Before(*admitted.LeaseExpiresAt) {
		t.Errorf("within the limits: %+v, %v", x, err)
	}
	step.EventID, step.Tasks = "p2", ptr[int64](6)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if x, err := h.Progress(t.Context(), step); err != nil || x.Decision == nil || x.Decision.Code != enforcement.CodeTasks {
				t.Errorf("beyond the limits: %+v, %v", x, err)
			}
		})
	}
	wait.Wait()
	stored := h.decisions()
	if len(stored) != 2 || stored[1].Kind != schemas.KindRuntime || stored[1].Code != enforcement.CodeTasks {
		t.Errorf("the stream has %d decisions, the last %+v; want the denial once", len(stored), stored[len(stored)-1])
	}
	step.ExecutionID = "nobody"
	if x, err := h.Progress(t.Context(), step); err != nil || x.Live || x.Decision != nil {
		t.Errorf("of an execution without a slot: %+v, %v", x, err)
	}
	if s := h.Stats(); s.Extended() != 10 || s.Stopped() != 8 {
		t.Errorf("%d extended, %d stopped, want 10 and 8", s.Extended(), s.Stopped())
	}
}

func TestACompletionIsRecordedAndFreesTheSlot(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(nil, ptr[int64](1)))
	h.admit("x", "e")
	for range 2 {
		r, err := h.Complete(t.Context(), over("x", schemas.OutcomeSucceeded), ptr[int64](3), "")
		if err != nil || !r.Released || !r.Known {
			t.Errorf("%+v, %v", r, err)
		}
	}
	r, err := h.Complete(t.Context(), over("x", schemas.OutcomeFailed), nil, "")
	if err != nil || r.Released || r.Prior != schemas.OutcomeSucceeded {
		t.Errorf("another outcome: %+v, %v; want the first to stand", r, err)
	}
	if r, err := h.Complete(t.Context(), over("unheard", schemas.OutcomeCanceled), nil, "key"); err != nil || r.Released || r.Known {
		t.Errorf("of an execution never asked for: %+v, %v", r, err)
	}
	if d := h.admit("y", "e"); !d.Admits() {
		t.Errorf("the slot is not free: %d", d.Code)
	}
	stored := h.stored(schemas.StreamExecutions)
	if len(stored) != 3 {
		t.Fatalf("the stream has %d completions, want 3: the repeated one is one message", len(stored))
	}
	event, err := schemas.Decode[schemas.ExecutionCompleted](stored[0].Subject(), stored[0].Data())
	if err != nil || event.Data.Outcome != schemas.OutcomeSucceeded || event.Data.Tasks == nil || *event.Data.Tasks != 3 {
		t.Errorf("the stored event is %+v, %v", event, err)
	}
}

func TestAnExecutionThatNeverBeganGivesItsUnitBack(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(ptr[int64](1), nil))
	h.admit("x", "e")
	for range 2 {
		r, err := h.Complete(t.Context(), over("x", schemas.OutcomeNotStarted), nil, "")
		if err != nil || !r.Released || !r.Refunded {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if got := h.outstanding(); got.Used != 0 || got.Running != 0 {
		t.Errorf("%d used, %d run", got.Used, got.Running)
	}
}

func TestOneKeyOfTwoWorkspacesIsTwoCompletions(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(nil, nil))
	for _, ws := range []string{"one", "two"} {
		c := over("x", schemas.OutcomeSucceeded)
		c.WorkspaceID = ws
		if _, err := h.Complete(t.Context(), c, nil, "1"); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(h.stored(schemas.StreamExecutions)); n != 2 {
		t.Errorf("the stream has %d completions, want 2", n)
	}
}

func TestACompletionOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	server := schematest.RedisServer(t)
	h := houseOver(t, dial(t, server.URL()), limits(nil, nil), impatient)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	_, err := h.Complete(t.Context(), over("x", schemas.OutcomeSucceeded), nil, "")
	if !errors.Is(err, api.ErrRecorded) || !errors.Is(err, enforcement.ErrUnavailable) {
		t.Errorf("with Redis away: %v, want ErrRecorded and ErrUnavailable", err)
	}
	if n := len(h.stored(schemas.StreamExecutions)); n != 1 || h.Stats().Recorded() != 1 {
		t.Errorf("the stream has %d completions, %d counted", n, h.Stats().Recorded())
	}
}

func TestACompletionThatCannotBeStoredFreesNothing(t *testing.T) {
	t.Parallel()
	server := schematest.NATSServer(t)
	h := newHouse(t, limits(nil, nil), impatient)
	h.admit("x", "e")
	server.Down()
	_, err := h.Complete(t.Context(), over("x", schemas.OutcomeSucceeded), nil, "")
	if !errors.Is(err, enforcement.ErrUnavailable) || errors.Is(err, api.ErrRecorded) {
		t.Errorf("with NATS away: %v, want ErrUnavailable alone", err)
	}
	if got := h.outstanding(); got.Running != 1 {
		t.Errorf("%d run, want the slot still held", got.Running)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.connected()
	if r, err := h.Complete(t.Context(), over("x", schemas.OutcomeSucceeded), nil, ""); err != nil || !r.Released {
		t.Errorf("said again: %+v, %v", r, err)
	}
	if n := len(h.stored(schemas.StreamExecutions)); n != 1 {
		t.Errorf("the stream has %d completions, want 1", n)
	}
}
