package enforcement_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

func z(at time.Time, member string) redis.Z {
	return redis.Z{Score: float64(at.UnixMilli()), Member: member}
}

func TestAPlanOlderThanRedisHasSeenIsReloadedNotUsed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	generous := h.plans.info
	h.plans.set(func(p *subscriptions.PlanInfo) {
		p.Revision, p.Snapshot.Limits.MaxExecutions = 2, schemas.LimitOf(1)
	})
	h.admit(t, ask("a", "1"))
	h.plans.stale = &generous // this instance has not heard of the downgrade
	d := h.admit(t, ask("b", "1"))
	if d.Code != enforcement.CodeExecutionQuota {
		t.Errorf("code %d, want 9001 by the newer plan", d.Code)
	}
	if len(h.plans.invalidated) != 1 || h.plans.invalidated[0] != 2 {
		t.Errorf("invalidated %v, want once, below revision 2", h.plans.invalidated)
	}
}

func TestAPlanThatStaysBehindIsNeverEnforced(t *testing.T) {
	t.Parallel()
	client := newHouse(t, unlimited(nil)).redis
	ahead, behind := houseOver(client, unlimited(nil)), houseOver(client, unlimited(nil))
	ahead.plans.set(func(p *subscriptions.PlanInfo) { p.Revision = 9 })
	ahead.admit(t, ask("a", "1"))
	got := behind.Admit(t.Context(), []enforcement.Request{ask("b", "1")})[0]
	if !errors.Is(got.Err, enforcement.ErrStale) {
		t.Errorf("decision %+v, error %v, want ErrStale", got.Decision, got.Err)
	}
	if d := behind.admit(t, ask("a", "1")); !d.Allowed || !d.Replayed {
		t.Errorf("allowed %v, replayed %v, want an earlier answer repeated even so", d.Allowed, d.Replayed)
	}
}

func TestAPeriodThatDoesNotContainRedisTimeIsNeverCharged(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Millisecond)
	tests := []struct {
		name   string
		period subscriptions.Period
	}{
		{"over", subscriptions.Period{Start: now.Add(-time.Hour), End: now}},
		{"not begun", subscriptions.Period{Start: now.Add(time.Hour), End: now.Add(2 * time.Hour)}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, unlimited(nil))
			h.admit(t, ask("a", "1"))
			h.plans.set(func(p *subscriptions.PlanInfo) { p.Period, p.UsageEpoch = tc.period, "other" })
			got := h.Admit(t.Context(), []enforcement.Request{ask("b", "1")})[0]
			if !errors.Is(got.Err, enforcement.ErrStale) {
				t.Errorf("decision %+v, error %v, want ErrStale", got.Decision, got.Err)
			}
			if got := h.outstanding(t, "other"); got.Open {
				t.Errorf("%+v, want nothing written for the period", got)
			}
		})
	}
}

func TestAWorkspaceOpensWithWhatTheDatabaseKnows(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(func(l *schemas.Limits) {
		l.MaxExecutions, l.MaxConcurrentExecutions = schemas.LimitOf(10), schemas.LimitOf(3)
	}))
	later := time.Now().Add(time.Hour)
	h.usage.known = map[string]enforcement.Usage{"epoch-1": {Used: 7, Peak: 5, Leases: []enforcement.Lease{
		{ExecutionID: "running", ExpiresAt: later},
		{ExecutionID: "gone", ExpiresAt: time.Now().Add(-time.Second)},
		{ExecutionID: "completed", ExpiresAt: later},
	}}}
	h.release(t, "completed", schemas.OutcomeSucceeded)
	d := h.admit(t, ask("a", "1"))
	if d.Used != 8 || d.Concurrent != 2 || d.Peak != 5 {
		t.Errorf("used %d, concurrent %d, peak %d, want 8, 2 and 5", d.Used, d.Concurrent, d.Peak)
	}
	if d := h.admit(t, ask("running", "again")); !d.Allowed || !d.Replayed {
		t.Errorf("allowed %v, replayed %v, want a running execution not to be counted again", d.Allowed, d.Replayed)
	}
	if got := h.release(t, "running", schemas.OutcomeSucceeded); !got.Released {
		t.Errorf("%+v, want its slot freed", got)
	}
	if h.usage.reads > 2 {
		t.Errorf("the database was read %d times, want once, and once more after the fence", h.usage.reads)
	}
}

func TestAWorkspaceWhoseUsageCannotBeReadStaysShut(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	h.usage.err = errors.New("database away")
	got := h.Admit(t.Context(), []enforcement.Request{ask("a", "1")})[0]
	if !errors.Is(got.Err, enforcement.ErrUnavailable) || !errors.Is(got.Err, h.usage.err) {
		t.Errorf("error %v, want ErrUnavailable with the cause", got.Err)
	}
	h.usage.err = nil
	if d := h.admit(t, ask("a", "1")); !d.Allowed || d.Replayed {
		t.Errorf("allowed %v, replayed %v after it came back, want a fresh allow", d.Allowed, d.Replayed)
	}
}

func TestAPeriodWhoseEndMovesKeepsItsUsage(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	h.admit(t, ask("a", "1"))
	h.plans.set(func(p *subscriptions.PlanInfo) {
		p.Revision, p.Period.End = 2, p.Period.End.Add(90*24*time.Hour)
	})
	d := h.admit(t, ask("b", "1"))
	if d.Used != 2 || !d.ResetsAt.Equal(h.plans.info.Period.End) {
		t.Errorf("used %d, resets at %v, want 2 at the new end", d.Used, d.ResetsAt)
	}
	expires := time.UnixMilli(h.redis.PExpireTime(t.Context(), prefix+":{ws}:w").Val().Milliseconds())
	if expires.Before(h.plans.info.Period.End) {
		t.Errorf("the counters expire at %v, before the period's end", expires)
	}
}

func TestPeriodsAndTermsLongOverArePruned(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil), func(o *enforcement.Options) { o.Window, o.LeaseDefault = 20*time.Millisecond, 20*time.Millisecond })
	h.admit(t, ask("a", "1"))
	h.plans.set(func(p *subscriptions.PlanInfo) {
		p.Revision, p.UsageEpoch, p.Period.End = 2, "epoch-2", time.Now().UTC().Add(300*time.Millisecond)
	})
	n := 0
	eventually(t, "the short period is over", func() bool {
		n++
		return h.Admit(t.Context(), []enforcement.Request{ask(fmt.Sprintf("short-%d", n), "1")})[0].Err != nil
	})
	eventually(t, "the short period is pruned", func() bool {
		n++
		h.plans.set(func(p *subscriptions.PlanInfo) {
			p.Revision, p.UsageEpoch, p.Period.End = int64(2+n), "epoch-3", time.Now().UTC().Add(time.Hour)
		})
		h.admit(t, ask(fmt.Sprintf("long-%d", n), "1"))
		return !h.outstanding(t, "epoch-2").Open
	})
	eventually(t, "a plan change drops terms that nobody can ask for any more", func() bool {
		n++
		before := h.redis.HLen(t.Context(), prefix+":{ws}:w").Val()
		h.plans.set(func(p *subscriptions.PlanInfo) { p.Revision = int64(2 + n) })
		h.admit(t, ask(fmt.Sprintf("later-%d", n), "1"))
		return h.redis.HLen(t.Context(), prefix+":{ws}:w").Val() <= before
	})
}
