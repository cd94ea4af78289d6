package enforcement_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// losing empties the database before the n-th pipeline from now.
type losing struct {
	client *redis.Client
	n      int
}

func (*losing) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*losing) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (l *losing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if l.n--; l.n == 0 {
			if err := l.client.FlushDB(ctx).Err(); err != nil {
				return err
			}
		}
		return next(ctx, commands)
	}
}

func TestALossBetweenMissingAndOpeningOpensNothingEmpty(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*subscriptions.PlanInfo)
	}{
		{"while a period was missing", func(p *subscriptions.PlanInfo) { p.Revision, p.UsageEpoch = 2, "epoch-2" }},
		{"while terms were missing", func(p *subscriptions.PlanInfo) { p.Revision, p.Snapshot.PlanKey = 2, "other" }},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, unlimited(func(l *schemas.Limits) {
				l.MaxExecutions, l.MaxConcurrentExecutions = schemas.LimitOf(1), schemas.LimitOf(1)
			}))
			first := h.admit(t, ask("running", "1"))
			known := enforcement.Usage{Used: 1, Peak: 1, Leases: []enforcement.Lease{{ExecutionID: "running", ExpiresAt: *first.LeaseExpiresAt}}}
			h.usage.known = map[string]enforcement.Usage{"epoch-1": known, "epoch-2": known}
			h.plans.set(tc.change)
			h.redis.AddHook(&losing{client: h.redis, n: 2}) // admit, then open
			d := h.admit(t, ask("second", "1"))
			if len(d.Exhausted) != 2 || d.Used != 1 || d.Concurrent != 1 {
				t.Errorf("exhausted %v, used %d, concurrent %d, want both limits held by what the database knows", d.Exhausted, d.Used, d.Concurrent)
			}
		})
	}
}

func TestAWorkspaceOpensWithAnyNumberOfLeases(t *testing.T) {
	t.Parallel()
	const n = 9001
	h := newHouse(t, unlimited(func(l *schemas.Limits) { l.MaxConcurrentExecutions = schemas.LimitOf(n) }))
	known := enforcement.Usage{Used: n, Peak: n}
	for i := range n {
		known.Leases = append(known.Leases, enforcement.Lease{ExecutionID: fmt.Sprintf("e%d", i), ExpiresAt: time.Now().Add(time.Hour)})
	}
	h.usage.known = map[string]enforcement.Usage{"epoch-1": known}
	if d := h.admit(t, ask("one-more", "1")); d.Code != enforcement.CodeConcurrency || d.Concurrent != n {
		t.Errorf("code %d with %d running, want 9002 with %d", d.Code, d.Concurrent, n)
	}
	if d := h.admit(t, ask("e9000", "again")); !d.Allowed || !d.Replayed {
		t.Errorf("allowed %v, replayed %v, want the last of them known as running", d.Allowed, d.Replayed)
	}
}

func TestTermsThatComeBackAfterALongTimeAreWhole(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil), func(o *enforcement.Options) { o.Window, o.LeaseDefault = 50*time.Millisecond, 20*time.Millisecond })
	end := h.plans.info.Period.End
	first := h.admit(t, ask("a", "1"))
	h.plans.set(func(p *subscriptions.PlanInfo) { p.Revision, p.Period.End = 2, end.Add(time.Hour) })
	h.admit(t, ask("b", "1"))
	eventually(t, "the first terms are due to be dropped", func() bool {
		return h.redis.Time(t.Context()).Val().Sub(first.DecidedAt) > 200*time.Millisecond
	})
	h.plans.set(func(p *subscriptions.PlanInfo) { p.Revision, p.Period.End = 3, end })
	h.admit(t, ask("c", "1"))
	if fields := h.redis.HLen(t.Context(), prefix+":{ws}:w").Val(); fields < 7 {
		t.Errorf("%d fields of state, want the marker, two revisions, the period and the three of the terms", fields)
	}
}

func TestAUnitGivenBackAfterALossIsNotTakenFromAnotherPeriod(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(func(l *schemas.Limits) { l.MaxExecutions = schemas.LimitOf(2) }))
	later := time.Now().Add(time.Hour)
	h.usage.known = map[string]enforcement.Usage{"epoch-1": {Used: 1, Leases: []enforcement.Lease{
		{ExecutionID: "of-this-period", ExpiresAt: later, UsageEpoch: "epoch-1"},
		{ExecutionID: "of-the-last", ExpiresAt: later, UsageEpoch: "epoch-0"},
	}}}
	if d := h.admit(t, ask("a", "1")); d.Used != 2 || d.Concurrent != 3 {
		t.Fatalf("used %d, concurrent %d, want 2 and 3", d.Used, d.Concurrent)
	}
	if got := h.release(t, "of-the-last", schemas.OutcomeNotStarted); !got.Released {
		t.Errorf("%+v, want its slot freed", got)
	}
	if d := h.admit(t, ask("b", "1")); d.Code != enforcement.CodeExecutionQuota {
		t.Errorf("code %d, want 9001: the unit was the last period's", d.Code)
	}
	h.release(t, "of-this-period", schemas.OutcomeNotStarted)
	if d := h.admit(t, ask("b", "2")); !d.Allowed {
		t.Errorf("code %d, want the unit of this period to be free again", d.Code)
	}
}

func TestTheDefaultPlanAfterASubscriptionIsNotTakenForAnOlderReading(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	h.admit(t, ask("a", "1"))
	h.plans.set(func(p *subscriptions.PlanInfo) {
		p.SubscriptionID, p.UsageEpoch, p.Snapshot.PlanKey, p.Snapshot.PlanRevision = "", "default.2026-11", "free", 2
	})
	if d := h.admit(t, ask("b", "1")); !d.Allowed || d.PlanKey != "free" {
		t.Errorf("code %d on plan %s, want an allow on free, whose revision is lower", d.Code, d.PlanKey)
	}
	h.plans.set(func(p *subscriptions.PlanInfo) { p.Snapshot.PlanRevision = 1 })
	got := h.Admit(t.Context(), []enforcement.Request{ask("c", "1")})[0]
	if !errors.Is(got.Err, enforcement.ErrStale) {
		t.Errorf("%+v, want an older reading of the default plan refused", got)
	}
}

func TestIDsThatCouldLeaveTheirWorkspaceAreRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	bad := ask("a", "1")
	bad.WorkspaceID = "ws}:x{"
	results := h.Admit(t.Context(), []enforcement.Request{bad, ask("b b", "1"), ask("good", "1")})
	if results[0].Err == nil || results[1].Err == nil || results[2].Err != nil || !results[2].Decision.Allowed {
		t.Errorf("%+v, want the first two refused and the third allowed", results)
	}
	if got := h.Release(t.Context(), []enforcement.Completion{{WorkspaceID: "", ExecutionID: "a", Outcome: schemas.OutcomeFailed}})[0]; got.Err == nil {
		t.Error("a completion without a workspace was released")
	}
	if got := h.Extend(t.Context(), []enforcement.Progress{{WorkspaceID: "ws", ExecutionID: ""}})[0]; got.Err == nil {
		t.Error("progress without an execution was extended")
	}
}
