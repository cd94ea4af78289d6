package enforcement_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// openPeriods opens the present period of workspace ws, and fails the test on an error.
func (h *house) openPeriods(t testing.TB) {
	t.Helper()
	if err := h.OpenPeriods(t.Context(), []string{"ws"})[0]; err != nil {
		t.Fatal(err)
	}
}

// renew moves the plan to a new period.
func renew(p *subscriptions.PlanInfo) {
	p.Revision++
	p.UsageEpoch, p.Period.Start = fmt.Sprintf("epoch-%d", p.Revision), time.Now().UTC().Add(-time.Second).Truncate(time.Millisecond)
}

func TestAPeriodIsOpenBeforeItsFirstRequest(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(func(l *schemas.Limits) { l.MaxConcurrentExecutions = schemas.LimitOf(5) }))
	for i := range 5 {
		h.admit(t, ask(fmt.Sprintf("x%d", i), "1"))
	}
	for i := range 2 {
		h.release(t, fmt.Sprintf("x%d", i), schemas.OutcomeSucceeded)
	}
	h.plans.set(renew)
	h.openPeriods(t)
	want := enforcement.Outstanding{Open: true, Used: 0, Peak: 3, Running: 3}
	if diff := cmp.Diff(want, h.outstanding(t, "epoch-2")); diff != "" {
		t.Errorf("the new period (-want +got):\n%s", diff)
	}
	if d := h.admit(t, ask("y", "1")); d.Used != 1 || d.Concurrent != 4 || d.Peak != 4 {
		t.Errorf("used %d, concurrent %d, peak %d, want 1, 4 and 4", d.Used, d.Concurrent, d.Peak)
	}
	if h.usage.reads != 2 {
		t.Errorf("the database was read %d times, want for the workspace and the period alone", h.usage.reads)
	}
}

func TestOpeningAgainChangesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	h.admit(t, ask("a", "1"))
	h.plans.set(renew)
	h.usage.known = map[string]enforcement.Usage{"epoch-2": {Used: 40, Peak: 50}}
	h.openPeriods(t)
	h.admit(t, ask("b", "1"))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { h.openPeriods(t) })
	}
	all.Wait()
	want := enforcement.Outstanding{Open: true, Used: 41, Peak: 50, Running: 2}
	if diff := cmp.Diff(want, h.outstanding(t, "epoch-2")); diff != "" {
		t.Errorf("the period after it was opened again (-want +got):\n%s", diff)
	}
}

func TestAPeriodThatSharesItsUsageGoesOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	h.admit(t, ask("a", "1"))
	h.plans.set(func(p *subscriptions.PlanInfo) {
		epoch := p.UsageEpoch
		renew(p)
		p.UsageEpoch, p.Period.End = epoch, p.Period.End.Add(time.Hour)
	})
	h.openPeriods(t)
	if d := h.admit(t, ask("b", "1")); d.Used != 2 || !d.PeriodEnd.Equal(h.plans.info.Period.End) {
		t.Errorf("used %d until %v, want 2 until the new end", d.Used, d.PeriodEnd)
	}
}

func TestNothingIsOpenedForAWorkspaceThatRedisDoesNotKnow(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	h.openPeriods(t)
	if n := h.redis.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys in Redis, want none", n)
	}
	h.usage.known = map[string]enforcement.Usage{"epoch-1": {Used: 7, Leases: []enforcement.Lease{
		{ExecutionID: "running", ExpiresAt: time.Now().Add(time.Hour), UsageEpoch: "epoch-1"},
	}}}
	if d := h.admit(t, ask("a", "1")); d.Used != 8 || d.Concurrent != 2 {
		t.Errorf("used %d, concurrent %d, want the first request to open with all that the database knows: 8 and 2", d.Used, d.Concurrent)
	}
}

func TestAnOldPlanOpensNothing(t *testing.T) {
	t.Parallel()
	behind := newHouse(t, unlimited(nil))
	ahead := houseOver(behind.redis, unlimited(nil))
	ahead.plans.set(func(p *subscriptions.PlanInfo) { p.Revision, p.Period.End = 9, p.Period.End.Add(time.Hour) })
	ahead.admit(t, ask("a", "1"))
	before := behind.redis.HGetAll(t.Context(), prefix+":{ws}:w").Val()
	behind.openPeriods(t) // the same period with another end
	behind.plans.set(func(p *subscriptions.PlanInfo) { p.UsageEpoch = "epoch-0" })
	behind.openPeriods(t)
	if diff := cmp.Diff(before, behind.redis.HGetAll(t.Context(), prefix+":{ws}:w").Val()); diff != "" {
		t.Errorf("an old plan changed what Redis knows (-before +after):\n%s", diff)
	}
}

func TestNobodyIsAdmittedUnderThePlanBeforeAnOpenedPeriod(t *testing.T) {
	t.Parallel()
	ahead := newHouse(t, unlimited(nil))
	behind := houseOver(ahead.redis, unlimited(nil))
	behind.admit(t, ask("a", "1"))
	ahead.plans.set(renew)
	ahead.openPeriods(t)
	got := behind.Admit(t.Context(), []enforcement.Request{ask("b", "1")})[0]
	if !errors.Is(got.Err, enforcement.ErrStale) {
		t.Errorf("decision %+v, error %v, want ErrStale", got.Decision, got.Err)
	}
}

// closed gives the house a Redis that is away.
func closed(t *testing.T, h *house) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = client.Close() })
	h.Enforcer = houseOver(client, unlimited(nil)).Enforcer
}

func TestWhatKeepsAPeriodFromBeingOpened(t *testing.T) {
	t.Parallel()
	unread := errors.New("away")
	for name, test := range map[string]struct {
		hinder func(*testing.T, *house)
		ws     string
		is     error
	}{
		"the plan cannot be read":  {func(_ *testing.T, h *house) { h.plans.err = unread }, "ws", unread},
		"the usage cannot be read": {func(_ *testing.T, h *house) { h.usage.err = unread }, "ws", enforcement.ErrUnavailable},
		"Redis is away":            {closed, "ws", enforcement.ErrUnavailable},
		"the workspace is no id":   {func(*testing.T, *house) {}, "w}s", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, unlimited(nil))
			test.hinder(t, h)
			err := h.OpenPeriods(t.Context(), []string{test.ws})[0]
			if err == nil || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("error %v, want %v", err, test.is)
			}
		})
	}
}
