package enforcement_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

func (h *house) probe(t testing.TB, payloads ...int64) []schemas.DecisionMade {
	t.Helper()
	plan := h.plans.info
	plan.WorkspaceID = "ws"
	got, err := h.Probe(t.Context(), plan, payloads)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// unlike is what an admission has and a probe has not, or not in the same millisecond.
var unlike = cmpopts.IgnoreFields(schemas.DecisionMade{},
	"DecisionID", "ExecutionID", "RequestEventID", "RequestEventSource", "LeaseExpiresAt", "DecidedAt", "PlanAsOf", "RetryAfterMS")

// TestAProbeSaysWhatAnAdmissionIsThenAnswered asks, and then does it, until each limit
// is reached.
func TestAProbeSaysWhatAnAdmissionIsThenAnswered(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]schemas.Limits{
		"nothing is limited": unlimited(nil),
		"the quota":          unlimited(func(l *schemas.Limits) { l.MaxExecutions = schemas.LimitOf(3) }),
		"concurrency":        unlimited(func(l *schemas.Limits) { l.MaxConcurrentExecutions = schemas.LimitOf(2) }),
		"the rate":           unlimited(func(l *schemas.Limits) { l.MaxExecutionsPerMinute = schemas.LimitOf(2) }),
		"no start at all":    unlimited(func(l *schemas.Limits) { l.MaxExecutionsPerMinute = schemas.LimitOf(0) }),
		"all at once": unlimited(func(l *schemas.Limits) {
			l.MaxExecutions, l.MaxConcurrentExecutions, l.MaxExecutionsPerMinute = schemas.LimitOf(2), schemas.LimitOf(2), schemas.LimitOf(2)
			l.MaxExecutionPayloadSizeMB = schemas.LimitOf(1)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, limits)
			for i := range 5 {
				for _, payload := range []int64{5 << 20, 0} {
					probed := h.probe(t, payload)[0]
					r := ask(fmt.Sprintf("x%d.%d", i, payload), "1")
					r.ExecutionID, r.PayloadBytes = fmt.Sprintf("x%d-%d", i, payload), payload
					admitted := h.admit(t, r)
					if admitted.Allowed {
						// An admission tells what it left, a probe what is there.
						admitted.Used, admitted.Concurrent, admitted.Peak = admitted.Used-1, admitted.Concurrent-1, probed.Peak
						if admitted.Remaining != nil {
							*admitted.Remaining++
						}
					}
					if diff := cmp.Diff(admitted, probed, unlike, cmpopts.EquateComparable(schemas.Limit{})); diff != "" {
						t.Errorf("execution %d of %d bytes: admission and probe differ (-admission +probe):\n%s", i, payload, diff)
					}
					if a, p := admitted.RetryAfterMS, probed.RetryAfterMS; (a == nil) != (p == nil) || a != nil && (*p < *a || *p > *a+5000) {
						t.Errorf("execution %d of %d bytes: retry after %v, probed %v", i, payload, a, p)
					}
				}
			}
			before := h.outstanding(t, "epoch-1")
			h.probe(t, 0, 0, 0)
			if diff := cmp.Diff(before, h.outstanding(t, "epoch-1")); diff != "" {
				t.Errorf("probes took something:\n%s", diff)
			}
		})
	}
}

func TestAProbeOfWhatRedisHasNotOpenedReadsTheDatabase(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(func(l *schemas.Limits) {
		l.MaxExecutions, l.MaxConcurrentExecutions = schemas.LimitOf(10), schemas.LimitOf(2)
	}))
	lease := func(id string, in time.Duration) enforcement.Lease {
		return enforcement.Lease{ExecutionID: id, ExpiresAt: time.Now().Add(in), UsageEpoch: "epoch-1"}
	}
	h.usage.known = map[string]enforcement.Usage{"epoch-1": {Used: 7, Peak: 2, Leases: []enforcement.Lease{lease("a", time.Hour), lease("b", time.Minute)}}}
	got := h.probe(t, 0)[0]
	if got.Code != enforcement.CodeConcurrency || got.Concurrent != 2 || got.RetryAfterMS == nil || *got.RetryAfterMS > time.Minute.Milliseconds() {
		t.Errorf("before Redis knows anything: %+v", got)
	}
	if n := h.redis.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("the probe made %d keys", n)
	}
	h.plans.set(func(p *subscriptions.PlanInfo) { p.Snapshot.Limits.MaxConcurrentExecutions = schemas.Unlimited })
	if got := h.probe(t, 0)[0]; !got.Allowed || got.Used != 7 || *got.Remaining != 3 {
		t.Errorf("without the limit: %+v", got)
	}
	h.admit(t, ask("c", "1"))
	h.plans.set(renew)
	// Leases are Redis's to know now, the new period still the database's.
	h.usage.known = map[string]enforcement.Usage{"epoch-2": {Used: 4}}
	if got := h.probe(t, 0)[0]; got.Used != 4 || got.Concurrent != 3 {
		t.Errorf("in a new period: %+v", got)
	}
	h.usage.err = errors.New("away")
	plan := h.plans.info
	plan.WorkspaceID = "ws"
	if _, err := h.Probe(t.Context(), plan, []int64{0}); !errors.Is(err, enforcement.ErrUnavailable) {
		t.Errorf("with the database away the error is %v", err)
	}
}

func TestWhatCannotBeProbed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	plan := h.plans.info
	plan.WorkspaceID = "ws"
	over := plan
	over.Period.End = time.Now().Add(-time.Minute)
	if _, err := h.Probe(t.Context(), over, []int64{0}); !errors.Is(err, enforcement.ErrStale) {
		t.Errorf("of a period that is over the error is %v", err)
	}
	closed(t, h)
	if _, err := h.Probe(t.Context(), plan, []int64{0}); !errors.Is(err, enforcement.ErrUnavailable) {
		t.Errorf("with Redis away the error is %v", err)
	}
}
