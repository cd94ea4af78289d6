package enforcement_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

func TestACompletionFreesItsSlotOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(func(l *schemas.Limits) { l.MaxConcurrentExecutions = schemas.LimitOf(2) }))
	h.admit(t, ask("a", "1"))
	h.admit(t, ask("b", "1"))
	if got, want := h.release(t, "a", schemas.OutcomeSucceeded), (enforcement.Release{Known: true, Released: true}); got != want {
		t.Errorf("first completion %+v, want %+v", got, want)
	}
	want := enforcement.Release{Known: true, Prior: schemas.OutcomeSucceeded}
	for range 3 {
		if got := h.release(t, "a", schemas.OutcomeNotStarted); got != want {
			t.Errorf("repeated and contradicting completion %+v, want %+v", got, want)
		}
	}
	if got := h.outstanding(t, "epoch-1"); got.Running != 1 || got.Used != 2 {
		t.Errorf("running %d, used %d, want 1 and 2: nobody else's slot or unit went", got.Running, got.Used)
	}
}

func TestACompletionBeforeItsRequestLeavesNoSlotTaken(t *testing.T) {
	t.Parallel()
	tests := []struct {
		outcome schemas.Outcome
		used    int64
	}{
		{schemas.OutcomeSucceeded, 1},
		{schemas.OutcomeFailed, 1},
		{schemas.OutcomeCanceled, 1},
		{schemas.OutcomeNotStarted, 0},
	}
	for _, tc := range tests {
		t.Run(string(tc.outcome), func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, unlimited(nil))
			if got := h.release(t, "a", tc.outcome); got != (enforcement.Release{}) {
				t.Errorf("completion of an unheard execution %+v, want nothing known or freed", got)
			}
			d := h.admit(t, ask("a", "1"))
			if !d.Allowed || d.LeaseExpiresAt != nil {
				t.Errorf("allowed %v with lease %v, want an allow without one", d.Allowed, d.LeaseExpiresAt)
			}
			if d := h.admit(t, ask("a", "1")); !d.Replayed || !d.Allowed {
				t.Errorf("replayed %v, allowed %v, want the allow repeated", d.Replayed, d.Allowed)
			}
			if got := h.outstanding(t, "epoch-1"); got.Used != tc.used || got.Running != 0 {
				t.Errorf("used %d, running %d, want %d and 0", got.Used, got.Running, tc.used)
			}
		})
	}
}

func TestNotStartedRefundsOnceToThePeriodThatWasCharged(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	h.admit(t, ask("a", "1"))
	h.admit(t, ask("b", "1"))
	h.plans.set(func(p *subscriptions.PlanInfo) { p.Revision, p.UsageEpoch = 2, "epoch-2" })
	if d := h.admit(t, ask("c", "1")); d.Used != 1 || d.Concurrent != 3 || d.Peak != 3 {
		t.Errorf("first of the new period: used %d, concurrent %d, peak %d, want 1, 3 and 3", d.Used, d.Concurrent, d.Peak)
	}
	if got := h.release(t, "a", schemas.OutcomeNotStarted); !got.Refunded || !got.Released {
		t.Errorf("%+v, want the slot freed and the unit given back", got)
	}
	for range 2 {
		if got := h.release(t, "a", schemas.OutcomeNotStarted); got.Refunded || got.Released {
			t.Errorf("repeated: %+v, want nothing given back", got)
		}
	}
	if got := h.outstanding(t, "epoch-1"); got.Used != 1 {
		t.Errorf("period that was charged: used %d, want 1", got.Used)
	}
	if got := h.outstanding(t, "epoch-2"); got.Used != 1 {
		t.Errorf("new period: used %d, want 1 as before", got.Used)
	}
}

func TestAReleaseRefusesAnOutcomeThatIsNone(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	h.admit(t, ask("a", "1"))
	got := h.Release(t.Context(), []enforcement.Completion{
		{WorkspaceID: "ws", ExecutionID: "a", Outcome: "exploded"},
		{WorkspaceID: "ws", ExecutionID: "a", Outcome: schemas.OutcomeFailed},
	})
	if got[0].Err == nil || got[1].Err != nil || !got[1].Released {
		t.Errorf("%+v, want an error for the first and a release for the second", got)
	}
}

func TestWithdrawTakesBackWhatTheSameEventObtainedUnheard(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	unheard := ask("a", "1")
	h.admit(t, unheard)
	for range 2 {
		got := h.Withdraw(t.Context(), []enforcement.Request{unheard})[0]
		if got.Err != nil || got.Decision.Code != enforcement.CodeUnavailable {
			t.Fatalf("code %d, error %v, want 9008 on record", got.Decision.Code, got.Err)
		}
	}
	if got := h.outstanding(t, "epoch-1"); got.Used != 0 || got.Running != 0 {
		t.Errorf("used %d, running %d, want 0 of both", got.Used, got.Running)
	}
	if d := h.admit(t, unheard); d.Code != enforcement.CodeUnavailable || !d.Replayed {
		t.Errorf("code %d, replayed %v, want the 9008 repeated", d.Code, d.Replayed)
	}
	if d := h.admit(t, ask("a", "2")); !d.Allowed {
		t.Errorf("code %d, want a new event judged anew", d.Code)
	}
	h.Withdraw(t.Context(), []enforcement.Request{unheard})
	if got := h.outstanding(t, "epoch-1"); got.Used != 1 || got.Running != 1 {
		t.Errorf("used %d, running %d, want what another event obtained to stay", got.Used, got.Running)
	}
}

func TestProgressIsHeldAgainstTheLimitsOfTheAdmission(t *testing.T) {
	t.Parallel()
	n := func(v int64) *int64 { return &v }
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name    string
		p       enforcement.Progress
		code    int
		used    int64
		reached []string
	}{
		{name: "nothing told"},
		{name: "at every limit", p: enforcement.Progress{Tasks: n(50), PayloadBytes: n(5 << 20), StartedAt: start, At: start.Add(10 * time.Minute)}},
		{name: "a task too many", p: enforcement.Progress{Tasks: n(51)}, code: 9003, used: 51, reached: []string{schemas.LimitTasks}},
		{name: "a byte too many", p: enforcement.Progress{PayloadBytes: n(5<<20 + 1)}, code: 9006, used: 6, reached: []string{schemas.LimitPayloadMB}},
		{name: "a millisecond too long", p: enforcement.Progress{StartedAt: start, At: start.Add(10*time.Minute + time.Millisecond)}, code: 9004, used: 11, reached: []string{schemas.LimitDurationMinutes}},
		{name: "one end of the clock alone counts from the admission", p: enforcement.Progress{StartedAt: start}},
		{
			name: "all at once",
			p:    enforcement.Progress{Tasks: n(99), PayloadBytes: n(1 << 40), StartedAt: start, At: start.Add(time.Hour)},
			code: 9006, used: 1 << 20, reached: []string{schemas.LimitPayloadMB, schemas.LimitTasks, schemas.LimitDurationMinutes},
		},
	}
	h := newHouse(t, unlimited(func(l *schemas.Limits) {
		l.MaxTasksPerExecution, l.MaxExecutionDurationMinutes, l.MaxExecutionPayloadSizeMB = schemas.LimitOf(50), schemas.LimitOf(10), schemas.LimitOf(5)
	}))
	h.admit(t, ask("a", "1"))
	h.plans.set(func(p *subscriptions.PlanInfo) { p.Revision, p.Snapshot.Limits = 2, schemas.Limits{} })
	h.admit(t, ask("b", "1")) // the plan that allows nothing is what new executions meet
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			p := tc.p
			p.WorkspaceID, p.ExecutionID, p.EventID, p.EventSource = "ws", "a", tc.name, "test"
			got := h.Extend(t.Context(), []enforcement.Progress{p})[0]
			if got.Err != nil || !got.Live {
				t.Fatalf("live %v, error %v", got.Live, got.Err)
			}
			if tc.code == 0 {
				if got.Decision != nil {
					t.Fatalf("decision %+v, want none", got.Decision)
				}
				return
			}
			d := got.Decision
			if d == nil || d.Code != tc.code || d.Used != tc.used || d.Kind != schemas.KindRuntime || d.Allowed || d.RequestEventID != tc.name {
				t.Fatalf("decision %+v, want a runtime denial with code %d and %d used", d, tc.code, tc.used)
			}
			if diff := cmp.Diff(tc.reached, d.Exhausted); diff != "" {
				t.Errorf("exhausted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithdrawLeavesAnAllowThatAnotherEventWasToldOf(t *testing.T) {
	t.Parallel()
	for _, together := range []bool{false, true} {
		h := newHouse(t, unlimited(nil))
		unheard, retry := ask("a", "1"), ask("a", "2")
		if together {
			h.Admit(t.Context(), []enforcement.Request{unheard, retry})
		} else {
			h.admit(t, unheard)
			h.admit(t, retry)
		}
		if got := h.Withdraw(t.Context(), []enforcement.Request{unheard})[0]; got.Decision.Code != enforcement.CodeUnavailable {
			t.Errorf("together %v: code %d, want the unheard event's own 9008", together, got.Decision.Code)
		}
		if got := h.outstanding(t, "epoch-1"); got.Used != 1 || got.Running != 1 {
			t.Errorf("together %v: used %d, running %d, want 1 of both: the retry runs", together, got.Used, got.Running)
		}
		if d := h.admit(t, retry); !d.Allowed || !d.Replayed {
			t.Errorf("together %v: allowed %v, want the retry's allow repeated", together, d.Allowed)
		}
	}
}
