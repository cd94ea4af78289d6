package enforcement_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

func (h *house) running(t testing.TB, q enforcement.RunningQuery) []enforcement.Running {
	t.Helper()
	q.WorkspaceID = "ws"
	got, err := h.Running(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (h *house) extend(t testing.TB, p enforcement.Progress) enforcement.Extension {
	t.Helper()
	p.WorkspaceID = "ws"
	got := h.Extend(t.Context(), []enforcement.Progress{p})[0]
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	return got
}

func number(n int64) *int64 { return &n }

func TestRunningTellsOfEachLiveLease(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	if got := h.running(t, enforcement.RunningQuery{}); len(got) != 0 {
		t.Errorf("before anything runs: %+v", got)
	}
	a := h.admit(t, ask("a", "1"))
	h.plans.set(func(p *subscriptions.PlanInfo) {
		p.Revision, p.SubscriptionID, p.Snapshot.Limits.MaxExecutionDurationMinutes = 2, "", schemas.LimitOf(1)
	})
	b := h.admit(t, ask("b", "1"))
	h.admit(t, ask("over", "1"))
	h.release(t, "over", schemas.OutcomeSucceeded)
	h.admit(t, ask("expired", "1"))
	h.expire(t, "expired")

	want := []enforcement.Running{
		{ExecutionID: "b", StartedAt: b.DecidedAt, LeaseExpiresAt: *b.LeaseExpiresAt},
		{ExecutionID: "a", StartedAt: a.DecidedAt, LeaseExpiresAt: *a.LeaseExpiresAt, SubscriptionID: *a.SubscriptionID},
	}
	if diff := cmp.Diff(want, h.running(t, enforcement.RunningQuery{})); diff != "" {
		t.Errorf("running (-want +got):\n%s", diff)
	}
}

func TestRunningKnowsTheMostThatProgressTold(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	h.admit(t, ask("a", "1"))
	const most = 1<<48 - 2
	for i, step := range []struct {
		told           enforcement.Progress
		tasks, payload *int64
	}{
		{told: enforcement.Progress{}},
		{told: enforcement.Progress{Tasks: number(0)}, tasks: number(0)},
		{told: enforcement.Progress{Tasks: number(7)}, tasks: number(7)},
		{told: enforcement.Progress{PayloadBytes: number(900)}, tasks: number(7), payload: number(900)},
		// What comes late or out of order makes nothing smaller.
		{told: enforcement.Progress{Tasks: number(3), PayloadBytes: number(1 << 40)}, tasks: number(7), payload: number(1 << 40)},
		{told: enforcement.Progress{PayloadBytes: number(1<<62 + 1)}, tasks: number(7), payload: number(most)},
	} {
		step.told.ExecutionID = "a"
		h.extend(t, step.told)
		got := h.running(t, enforcement.RunningQuery{})
		if len(got) != 1 || !cmp.Equal(got[0].Tasks, step.tasks) || !cmp.Equal(got[0].PayloadBytes, step.payload) {
			t.Errorf("step %d: %s", i, cmp.Diff([]*int64{step.tasks, step.payload}, []*int64{got[0].Tasks, got[0].PayloadBytes}))
		}
	}
	// The admission is still on record, and repeated like before.
	if d := h.admit(t, ask("a", "1")); !d.Replayed || d.Used != 1 {
		t.Errorf("the repeated admission is %+v", d)
	}
	if d := h.admit(t, ask("a", "another event")); !d.Replayed {
		t.Errorf("an admission by another event is %+v", d)
	}
	if got := h.running(t, enforcement.RunningQuery{}); !cmp.Equal(got[0].Tasks, number(7)) {
		t.Errorf("after that it is %+v", got)
	}
	if r := h.release(t, "a", schemas.OutcomeNotStarted); !r.Released || !r.Refunded {
		t.Errorf("the release is %+v", r)
	}
	if d := h.admit(t, ask("a", "1")); !d.Replayed {
		t.Errorf("the admission repeated after the end is %+v", d)
	}
}

func TestOneBatchOfProgressKeepsTheMostOfEach(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	h.admit(t, ask("a", "1"))
	of := func(tasks, payload *int64) enforcement.Progress {
		return enforcement.Progress{WorkspaceID: "ws", ExecutionID: "a", Tasks: tasks, PayloadBytes: payload}
	}
	h.Extend(t.Context(), []enforcement.Progress{of(number(9), nil), of(nil, number(5)), of(number(2), nil)})
	got := h.running(t, enforcement.RunningQuery{})
	if !cmp.Equal(got[0].Tasks, number(9)) || !cmp.Equal(got[0].PayloadBytes, number(5)) {
		t.Errorf("running is %+v", got[0])
	}
}

func TestRunningIsPagedWithoutLosingAny(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	var requests []enforcement.Request
	var want []string
	for i := range 250 {
		id := fmt.Sprintf("x%03d", i)
		requests, want = append(requests, ask(id, "1")), append(want, id)
	}
	// Each batch is admitted in one millisecond, and its leases end in one.
	for batch := range slices.Chunk(requests, 25) {
		h.Admit(t.Context(), batch)
	}
	var got []string
	pages := 0
	for after := (time.Time{}); ; pages++ {
		page := h.running(t, enforcement.RunningQuery{Limit: 10, After: after})
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			got = append(got, r.ExecutionID)
		}
		after = page[len(page)-1].LeaseExpiresAt
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || pages > 10 {
		t.Errorf("in %d pages (-want +got):\n%s", pages, diff)
	}
}

func TestRunningAfterALossIsWhatTheDatabaseKnew(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	ends := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	h.usage.known = map[string]enforcement.Usage{"epoch-1": {Used: 7, Leases: []enforcement.Lease{{ExecutionID: "before", ExpiresAt: ends, UsageEpoch: "epoch-1"}}}}
	h.admit(t, ask("a", "1"))
	want := enforcement.Running{ExecutionID: "before", LeaseExpiresAt: ends, SubscriptionID: h.plans.info.SubscriptionID}
	got := h.running(t, enforcement.RunningQuery{})
	if diff := cmp.Diff(want, got[0], cmpopts.IgnoreFields(enforcement.Running{}, "StartedAt")); diff != "" || len(got) != 2 {
		t.Errorf("%d running (-want +got):\n%s", len(got), diff)
	}
}

func TestRunningSaysWhenRedisIsAway(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	closed(t, h)
	if _, err := h.Running(t.Context(), enforcement.RunningQuery{WorkspaceID: "ws"}); !errors.Is(err, enforcement.ErrUnavailable) {
		t.Errorf("error is %v", err)
	}
	if _, err := h.Running(t.Context(), enforcement.RunningQuery{WorkspaceID: "a}b"}); err == nil || errors.Is(err, enforcement.ErrUnavailable) {
		t.Errorf("of no id the error is %v", err)
	}
}
