package enforcement_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

func TestAdmitNamesEveryExhaustedLimitAndTheFirstDecides(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		limits    func(*schemas.Limits)
		before    int // executions admitted first
		payload   int64
		code      int
		exhausted []string
	}{
		{name: "nothing reached", limits: nil, before: 3},
		{
			name:   "quota of zero",
			limits: func(l *schemas.Limits) { l.MaxExecutions = schemas.LimitOf(0) },
			code:   enforcement.CodeExecutionQuota, exhausted: []string{schemas.LimitExecutions},
		},
		{
			name:   "concurrency of zero",
			limits: func(l *schemas.Limits) { l.MaxConcurrentExecutions = schemas.LimitOf(0) },
			code:   enforcement.CodeConcurrency, exhausted: []string{schemas.LimitConcurrentExecutions},
		},
		{
			name:   "rate of zero",
			limits: func(l *schemas.Limits) { l.MaxExecutionsPerMinute = schemas.LimitOf(0) },
			code:   enforcement.CodeRate, exhausted: []string{schemas.LimitExecutionsPerMinute},
		},
		{
			name:    "payload of zero megabytes",
			limits:  func(l *schemas.Limits) { l.MaxExecutionPayloadSizeMB = schemas.LimitOf(0) },
			payload: 1, code: enforcement.CodePayload, exhausted: []string{schemas.LimitPayloadMB},
		},
		{
			name:    "payload of the very limit",
			limits:  func(l *schemas.Limits) { l.MaxExecutionPayloadSizeMB = schemas.LimitOf(5) },
			payload: 5 << 20,
		},
		{
			name:   "quota before concurrency and rate",
			before: 2,
			limits: func(l *schemas.Limits) {
				l.MaxExecutions, l.MaxConcurrentExecutions, l.MaxExecutionsPerMinute = schemas.LimitOf(2), schemas.LimitOf(2), schemas.LimitOf(2)
			},
			code:      enforcement.CodeExecutionQuota,
			exhausted: []string{schemas.LimitExecutions, schemas.LimitConcurrentExecutions, schemas.LimitExecutionsPerMinute},
		},
		{
			name:   "payload before all",
			before: 1,
			limits: func(l *schemas.Limits) {
				l.MaxExecutions, l.MaxExecutionPayloadSizeMB = schemas.LimitOf(1), schemas.LimitOf(1)
			},
			payload: 1<<20 + 1, code: enforcement.CodePayload,
			exhausted: []string{schemas.LimitPayloadMB, schemas.LimitExecutions},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, unlimited(tc.limits))
			for i := range tc.before {
				h.admit(t, ask(string(rune('a'+i)), "1"))
			}
			r := ask("last", "1")
			r.PayloadBytes = tc.payload
			d := h.admit(t, r)
			if d.Code != tc.code || d.Allowed != (tc.code == 0) || d.Error != enforcement.CodeName(tc.code) {
				t.Errorf("code %d (%s), allowed %v, want code %d", d.Code, d.Error, d.Allowed, tc.code)
			}
			if diff := cmp.Diff(append([]string{}, tc.exhausted...), d.Exhausted); diff != "" {
				t.Errorf("exhausted (-want +got):\n%s", diff)
			}
			want := int64(tc.before)
			if d.Allowed {
				want++
			}
			if got := h.outstanding(t, "epoch-1"); got.Used != want || got.Running != want {
				t.Errorf("used %d and running %d, want %d of both: a denial takes nothing", got.Used, got.Running, want)
			}
		})
	}
}

func TestAnAllowSaysAllItWasMeasuredAgainst(t *testing.T) {
	t.Parallel()
	limits := unlimited(func(l *schemas.Limits) {
		l.MaxExecutions, l.MaxConcurrentExecutions = schemas.LimitOf(10), schemas.LimitOf(4)
		l.MaxExecutionDurationMinutes = schemas.LimitOf(10)
	})
	h := newHouse(t, limits)
	h.admit(t, ask("a", "1"))
	d := h.admit(t, ask("b", "2"))
	plan := h.plans.info
	ten, eight, four := int64(10), int64(8), int64(4)
	lease := d.DecidedAt.Add(15 * time.Minute)
	want := schemas.DecisionMade{
		DecisionID: d.DecisionID, Kind: schemas.KindAdmission, WorkspaceID: "ws", ExecutionID: "b",
		RequestEventID: "2", RequestEventSource: "test", Allowed: true, Message: "Allowed.",
		LimitValue: &ten, Used: 2, Remaining: &eight, Exhausted: []string{}, Concurrent: 2, ConcurrentLimit: &four, Peak: 2,
		ResetsAt: &plan.Period.End, LeaseExpiresAt: &lease,
		PlanKey: "pro", PlanRevision: 3, SubscriptionID: &plan.SubscriptionID,
		PeriodStart: plan.Period.Start, PeriodEnd: plan.Period.End, Limits: limits,
		Exact: true, PlanAsOf: plan.ReadAt, DecidedAt: d.DecidedAt,
	}
	if diff := cmp.Diff(want, d, cmp.AllowUnexported(schemas.Limit{})); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	if age := time.Since(d.DecidedAt); age < -time.Minute || age > time.Minute {
		t.Errorf("decided at %v, want now by Redis's clock", d.DecidedAt)
	}
}

func TestADenialSaysWhenToAskAgain(t *testing.T) {
	t.Parallel()
	minute := func(l *schemas.Limits) {
		l.MaxExecutionDurationMinutes = schemas.LimitOf(10)
	}
	tests := []struct {
		name     string
		limit    func(*schemas.Limits)
		from, to time.Duration
	}{
		{"quota: at the end of the period", func(l *schemas.Limits) { l.MaxExecutions = schemas.LimitOf(1) }, 23 * time.Hour, 24 * time.Hour},
		{"concurrency: when the first lease ends", func(l *schemas.Limits) { l.MaxConcurrentExecutions = schemas.LimitOf(1) }, 14 * time.Minute, 15 * time.Minute},
		{"rate: when the next start is due", func(l *schemas.Limits) { l.MaxExecutionsPerMinute = schemas.LimitOf(1) }, 50 * time.Second, time.Minute},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, unlimited(func(l *schemas.Limits) { minute(l); tc.limit(l) }))
			h.admit(t, ask("a", "1"))
			d := h.admit(t, ask("b", "1"))
			if d.Allowed || d.RetryAfterMS == nil {
				t.Fatalf("allowed %v, retry after %v, want a denial with one", d.Allowed, d.RetryAfterMS)
			}
			if got := time.Duration(*d.RetryAfterMS) * time.Millisecond; got < tc.from || got > tc.to {
				t.Errorf("retry after %v, want between %v and %v", got, tc.from, tc.to)
			}
		})
	}
}

func TestALongWaitIsNeverToldAsAShortOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(func(l *schemas.Limits) { l.MaxExecutions = schemas.LimitOf(0) }))
	h.plans.set(func(p *subscriptions.PlanInfo) { p.Period.End = p.Period.Start.AddDate(75, 0, 0) })
	// A record has room for 34 years.
	const years = 34 * 365 * 24 * time.Hour
	d := h.admit(t, ask("a", "1"))
	if d.RetryAfterMS == nil || time.Duration(*d.RetryAfterMS)*time.Millisecond < years {
		t.Errorf("retry after %v ms, want as long as can be told of 75 years", d.RetryAfterMS)
	}
}

func TestReadingsThatDifferInTheirLimitsAloneAreToldApart(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	h.admit(t, ask("a", "1"))
	h.plans.info.Snapshot.Limits.MaxExecutions = schemas.LimitOf(1)
	if d := h.admit(t, ask("b", "1")); d.Code != enforcement.CodeExecutionQuota {
		t.Errorf("code %d, want 9001 by the limits of the second reading", d.Code)
	}
}

func TestARepeatedAnswerIsTheFirstOneWhateverChangedMeanwhile(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(func(l *schemas.Limits) { l.MaxExecutions = schemas.LimitOf(1) }))
	allowed, denied := h.admit(t, ask("a", "1")), h.admit(t, ask("b", "1"))
	h.plans.set(func(p *subscriptions.PlanInfo) {
		p.Revision, p.Snapshot.PlanRevision, p.Snapshot.PlanKey = 2, 4, "enterprise"
		p.Snapshot.Limits.MaxExecutions = schemas.LimitOf(100)
	})
	if d := h.admit(t, ask("c", "1")); !d.Allowed || d.Used != 2 {
		t.Fatalf("after the upgrade: allowed %v, used %d, want allowed with 2 used", d.Allowed, d.Used)
	}
	h.release(t, "a", schemas.OutcomeSucceeded)
	for _, first := range []schemas.DecisionMade{allowed, denied} {
		again := h.admit(t, ask(first.ExecutionID, "1"))
		want := first
		want.Replayed = true
		// A completed execution has no lease any more, and how old the plan was is
		// known only as "not younger than the decision".
		want.LeaseExpiresAt, want.PlanAsOf = again.LeaseExpiresAt, again.PlanAsOf
		if diff := cmp.Diff(want, again, cmp.AllowUnexported(schemas.Limit{})); diff != "" {
			t.Errorf("repeated answer for %s (-want +got):\n%s", first.ExecutionID, diff)
		}
	}
}

func TestANewEventForADeniedExecutionIsJudgedAnew(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(func(l *schemas.Limits) { l.MaxConcurrentExecutions = schemas.LimitOf(1) }))
	h.admit(t, ask("a", "1"))
	if d := h.admit(t, ask("b", "1")); d.Code != enforcement.CodeConcurrency {
		t.Fatalf("code %d, want 9002", d.Code)
	}
	h.release(t, "a", schemas.OutcomeSucceeded)
	if d := h.admit(t, ask("b", "2")); !d.Allowed || d.Replayed {
		t.Errorf("allowed %v, replayed %v, want a fresh allow for the new event", d.Allowed, d.Replayed)
	}
	if d := h.admit(t, ask("b", "1")); d.Allowed || !d.Replayed {
		t.Errorf("allowed %v, replayed %v, want the first event's denial repeated", d.Allowed, d.Replayed)
	}
	third := h.admit(t, ask("b", "3"))
	if !third.Allowed || !third.Replayed || third.Used != 2 {
		t.Errorf("allowed %v, replayed %v, used %d, want the allow repeated for another event", third.Allowed, third.Replayed, third.Used)
	}
}

func TestADeadlineThatHasPassedIsRefusedAndAnAnswerGivenInTimeStands(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	late := ask("late", "1")
	late.Deadline = time.Now().Add(-time.Second)
	d := h.admit(t, late)
	if d.Code != enforcement.CodeUnavailable || d.PlanKey != "pro" {
		t.Errorf("code %d on plan %q, want 9008 that names the plan", d.Code, d.PlanKey)
	}
	timely := ask("timely", "1")
	timely.Deadline = time.Now().Add(time.Hour)
	h.admit(t, timely)
	timely.Deadline = time.Now().Add(-time.Hour)
	if d := h.admit(t, timely); !d.Allowed || !d.Replayed {
		t.Errorf("allowed %v, replayed %v, want the answer that was given in time", d.Allowed, d.Replayed)
	}
	if got := h.outstanding(t, "epoch-1"); got.Used != 1 {
		t.Errorf("used %d, want 1", got.Used)
	}
}

func TestAPlanThatCannotBeReadAdmitsNobody(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	away := errors.New("database away")
	h.plans.err = away
	got := h.Admit(t.Context(), []enforcement.Request{ask("a", "1")})[0]
	if !errors.Is(got.Err, away) || got.Decision.Allowed {
		t.Errorf("error %v, allowed %v, want the reading's error and no allow", got.Err, got.Decision.Allowed)
	}
	if n := h.redis.Exists(t.Context(), prefix+":{ws}:w").Val(); n != 0 {
		t.Errorf("%d keys written, want none", n)
	}
}

func TestOneBatchJudgesManyWorkspacesInOrder(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(func(l *schemas.Limits) { l.MaxExecutions = schemas.LimitOf(2) }))
	var requests []enforcement.Request
	for _, execution := range []string{"a", "b", "a", "c"} {
		for _, workspace := range []string{"ws1", "ws2"} {
			r := ask(execution, "1")
			r.WorkspaceID = workspace
			requests = append(requests, r)
		}
	}
	want := []int{0, 0, 0, 0, 0, 0, 9001, 9001}
	for i, got := range h.Admit(t.Context(), requests) {
		if got.Err != nil || got.Decision.Code != want[i] || got.Decision.WorkspaceID != requests[i].WorkspaceID {
			t.Errorf("answer %d: %+v, error %v, want code %d for %s", i, got.Decision.Code, got.Err, want[i], requests[i].WorkspaceID)
		}
	}
}

func TestABatchLargerThanAGroupKeepsTheLimit(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(func(l *schemas.Limits) { l.MaxExecutions = schemas.LimitOf(600) }))
	requests := make([]enforcement.Request, 1000)
	for i := range requests {
		requests[i] = ask(fmt.Sprintf("e%d", i), "1")
	}
	allowed := 0
	for i, got := range h.Admit(t.Context(), requests) {
		if got.Err != nil {
			t.Fatalf("answer %d: %v", i, got.Err)
		}
		if got.Decision.Allowed {
			allowed++
		}
	}
	if allowed != 600 {
		t.Errorf("%d allowed of 1000, want exactly 600", allowed)
	}
}
