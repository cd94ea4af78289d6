package enforcement_test

import (
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// eventually asks until the answer is yes; Redis's clock cannot be waited on in
// any other way.
func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !yes() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func TestALeaseExpiresByItselfAndFreesItsSlot(t *testing.T) {
	t.Parallel()
	short := func(o *enforcement.Options) { o.LeaseDefault = 300 * time.Millisecond }
	h := newHouse(t, unlimited(func(l *schemas.Limits) { l.MaxConcurrentExecutions = schemas.LimitOf(1) }), short)
	first := h.admit(t, ask("a", "1"))
	if d := h.admit(t, ask("b", "early")); d.Code != enforcement.CodeConcurrency {
		t.Fatalf("code %d while the lease is live, want 9002", d.Code)
	}
	eventually(t, "the lease expires", func() bool { return h.outstanding(t, "epoch-1").Running == 0 })
	if now := h.redis.Time(t.Context()).Val(); now.Before(*first.LeaseExpiresAt) {
		t.Errorf("the slot was free at %v, before the lease's end at %v", now, first.LeaseExpiresAt)
	}
	if d := h.admit(t, ask("b", "late")); !d.Allowed || d.Concurrent != 1 {
		t.Errorf("code %d, concurrent %d after the lease's end, want an allow with 1", d.Code, d.Concurrent)
	}
	if got := h.Extend(t.Context(), []enforcement.Progress{{WorkspaceID: "ws", ExecutionID: "a"}})[0]; got.Live {
		t.Error("a lease that had expired was extended")
	}
	if got := h.release(t, "a", schemas.OutcomeNotStarted); got.Released || !got.Refunded {
		t.Errorf("%+v, want the late completion to give back the unit but no slot", got)
	}
}

func TestAQuietWorkspaceNeverLosesALiveLease(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil), func(o *enforcement.Options) { o.LeaseDefault, o.Window = 90*24*time.Hour, time.Hour })
	d := h.admit(t, ask("a", "1"))
	expires := map[string]time.Time{}
	for _, key := range []string{"l", "x", "w"} {
		at := time.UnixMilli(h.redis.PExpireTime(t.Context(), prefix+":{ws}:"+key).Val().Milliseconds())
		if late := d.LeaseExpiresAt.Add(time.Hour); at.Before(late) {
			t.Errorf("key %s expires at %v, before %v, a window after the lease", key, at, late)
		}
		expires[key] = at
	}
	if expires["l"].Before(expires["x"]) {
		t.Errorf("leases expire at %v, their records at %v: nothing would remove the records of a workspace that wakes between",
			expires["l"], expires["x"])
	}
}

func TestARetryForASlotIsWhenTheSoonestLeaseEnds(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(func(l *schemas.Limits) {
		l.MaxConcurrentExecutions, l.MaxExecutionDurationMinutes = schemas.LimitOf(2), schemas.LimitOf(600)
	}))
	h.admit(t, ask("long", "1"))
	h.plans.set(func(p *subscriptions.PlanInfo) {
		p.Revision, p.Snapshot.Limits.MaxExecutionDurationMinutes = 2, schemas.LimitOf(1)
	})
	got := h.Admit(t.Context(), []enforcement.Request{ask("short", "1"), ask("refused", "1")})
	wait := got[1].Decision.RetryAfterMS
	if !got[0].Decision.Allowed || wait == nil || *wait != (6*time.Minute).Milliseconds() {
		t.Errorf("allowed %v, then retry after %v ms, want the 6 minutes of the lease just taken", got[0].Decision.Allowed, wait)
	}
}

func TestEveryKeyOfAWorkspaceExpiresAfterItIsOver(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(func(l *schemas.Limits) { l.MaxExecutions = schemas.LimitOf(2) }))
	h.admit(t, ask("a", "1"))
	h.admit(t, ask("b", "1"))
	h.admit(t, ask("denied", "1"))
	h.release(t, "a", schemas.OutcomeSucceeded)
	h.release(t, "unheard", schemas.OutcomeSucceeded)
	h.Extend(t.Context(), []enforcement.Progress{{WorkspaceID: "ws", ExecutionID: "b"}})
	all := h.redis.Keys(t.Context(), "*").Val()
	if len(all) < 4 {
		t.Fatalf("keys %v, want at least the state, the leases, the records and what is over", all)
	}
	for _, key := range all {
		if key == prefix+":epoch" {
			continue // one for all workspaces
		}
		if ttl := h.redis.TTL(t.Context(), key).Val(); ttl <= 0 {
			t.Errorf("key %s never expires", key)
		}
	}
}

func TestProgressMovesALeaseLaterAndNeverEarlier(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil), func(o *enforcement.Options) { o.LeaseDefault = time.Hour })
	d := h.admit(t, ask("a", "1"))
	extend := func() time.Time {
		got := h.Extend(t.Context(), []enforcement.Progress{{WorkspaceID: "ws", ExecutionID: "a"}})[0]
		if got.Err != nil || !got.Live {
			t.Fatalf("live %v, error %v", got.Live, got.Err)
		}
		return got.LeaseExpiresAt
	}
	last := *d.LeaseExpiresAt
	eventually(t, "progress moves the lease", func() bool { return extend().After(last) })
	h.redis.ZAdd(t.Context(), prefix+":{ws}:l", z(last.Add(48*time.Hour), "a"))
	if got := extend(); !got.Equal(last.Add(48 * time.Hour)) {
		t.Errorf("lease ends at %v, want %v: never earlier", got, last.Add(48*time.Hour))
	}
}

// Most rates have gaps of a fraction of a microsecond: none may round a start away.
func TestAWholeMinutesStartsAreAllowedAtOnceAndNoneMore(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	for _, rate := range []int{1, 7, 9, 28, 97, 249} {
		h.plans.set(func(p *subscriptions.PlanInfo) {
			p.Revision++
			p.Snapshot.Limits.MaxExecutionsPerMinute = schemas.LimitOf(int64(rate))
		})
		requests := make([]enforcement.Request, rate+1)
		for i := range requests {
			requests[i] = ask(time.Duration(i).String(), "1")
			requests[i].WorkspaceID = time.Duration(rate).String()
		}
		for i, got := range h.Admit(t.Context(), requests) {
			if want := i < rate; got.Err != nil || got.Decision.Allowed != want {
				t.Errorf("rate %d, start %d: allowed %v, error %v", rate, i+1, got.Decision.Allowed, got.Err)
			}
		}
	}
}

func TestTheStartRateComesBackOneByOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(func(l *schemas.Limits) { l.MaxExecutionsPerMinute = schemas.LimitOf(300) }))
	requests := make([]enforcement.Request, 310)
	for i := range requests {
		requests[i] = ask(time.Duration(i).String(), "1")
	}
	allowed := 0
	for _, got := range h.Admit(t.Context(), requests[:250]) {
		if got.Decision.Allowed {
			allowed++
		}
	}
	var refused schemas.DecisionMade
	for _, got := range h.Admit(t.Context(), requests[250:]) {
		if got.Decision.Allowed {
			allowed++
		} else {
			refused = got.Decision
		}
	}
	// 300 at once, and what came back between the two calls: one each 200 ms.
	if allowed < 300 || allowed > 309 || refused.Code != enforcement.CodeRate {
		t.Fatalf("%d allowed, then code %d, want 300 and 9005", allowed, refused.Code)
	}
	if wait := *refused.RetryAfterMS; wait < 1 || wait > 200 {
		t.Errorf("retry after %d ms, want at most the 200 ms between two starts", wait)
	}
	try := 0
	eventually(t, "a start comes back", func() bool {
		try++
		return h.admit(t, ask("again"+time.Duration(try).String(), "1")).Allowed
	})
}
