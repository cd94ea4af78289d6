package enforcement_test

import (
	"testing"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// The stand-in is for a first look on a machine without Redis, nothing else: this
// test keeps that look working, every other test has the real thing.
func TestTheStandInForRedisDecidesTheSame(t *testing.T) {
	t.Parallel()
	h := houseOver(schematest.RedisStandIn(t), unlimited(func(l *schemas.Limits) {
		l.MaxExecutions, l.MaxConcurrentExecutions, l.MaxTasksPerExecution = schemas.LimitOf(2), schemas.LimitOf(1), schemas.LimitOf(5)
	}))
	if d := h.admit(t, ask("a", "1")); !d.Allowed || d.Used != 1 || d.Concurrent != 1 {
		t.Fatalf("%+v, want the first allow", d)
	}
	if d := h.admit(t, ask("b", "1")); d.Code != enforcement.CodeConcurrency || d.RetryAfterMS == nil {
		t.Errorf("code %d, want 9002 and when to ask again", d.Code)
	}
	tasks := int64(6)
	got := h.Extend(t.Context(), []enforcement.Progress{{WorkspaceID: "ws", ExecutionID: "a", Tasks: &tasks}})[0]
	if got.Err != nil || !got.Live || got.Decision == nil || got.Decision.Code != enforcement.CodeTasks {
		t.Errorf("%+v, want a live lease and 9003", got)
	}
	if got := h.running(t, enforcement.RunningQuery{}); len(got) != 1 || got[0].Tasks == nil || *got[0].Tasks != tasks || got[0].SubscriptionID == "" {
		t.Errorf("running is %+v, want one of 6 tasks", got)
	}
	if d := h.probe(t, 0)[0]; d.Code != enforcement.CodeConcurrency || d.RetryAfterMS == nil {
		t.Errorf("the probe is %+v, want 9002 and when to ask again", d)
	}
	if got := h.release(t, "a", schemas.OutcomeNotStarted); !got.Released || !got.Refunded {
		t.Errorf("%+v, want slot and unit back", got)
	}
	h.admit(t, ask("c", "1"))
	h.release(t, "c", schemas.OutcomeSucceeded)
	h.admit(t, ask("d", "1"))
	if d := h.admit(t, ask("e", "1")); d.Code != enforcement.CodeExecutionQuota {
		t.Errorf("code %d, want 9001", d.Code)
	}
	if w := h.Withdraw(t.Context(), []enforcement.Request{ask("d", "1")})[0]; w.Err != nil || w.Decision.Code != enforcement.CodeUnavailable {
		t.Errorf("%+v, want 9008 on record", w)
	}
	if got := h.outstanding(t, "epoch-1"); got.Used != 1 || got.Running != 0 || got.Peak != 1 {
		t.Errorf("%+v, want 1 used, none running, a peak of 1", got)
	}
}
