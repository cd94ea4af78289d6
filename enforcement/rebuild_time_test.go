package enforcement_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// unhurried is a database that takes a while for each read, once it is slow.
type unhurried struct{ slow atomic.Bool }

func (u *unhurried) Usage(ctx context.Context, _, _ string) (enforcement.Usage, error) {
	if !u.slow.Load() {
		return enforcement.Usage{}, nil
	}
	select {
	case <-time.After(20 * time.Millisecond):
		return enforcement.Usage{}, nil
	case <-ctx.Done():
		return enforcement.Usage{}, ctx.Err()
	}
}

func TestCallersWithLittleTimeOpenManyWorkspacesPieceByPiece(t *testing.T) {
	t.Parallel()
	const workspaces = 120
	const patience = 200 * time.Millisecond // 8 reads at a time: 300 ms for all
	for _, what := range []string{"after a loss", "after a renewal"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			usage := &unhurried{}
			h := newHouse(t, unlimited(nil), func(o *enforcement.Options) { o.Usage, o.RebuildFence = usage, patience })
			ask := func(execution string) []enforcement.Request {
				requests := make([]enforcement.Request, workspaces)
				for i := range requests {
					requests[i] = ask(execution, "1")
					requests[i].WorkspaceID = fmt.Sprintf("w%d", i)
				}
				return requests
			}
			if what == "after a renewal" {
				h.patient(t, ask("a")...)
				h.plans.set(func(p *subscriptions.PlanInfo) { p.Revision, p.UsageEpoch = 2, "epoch-2" })
			}
			usage.slow.Store(true)
			calls := 0
			eventually(t, "all are decided", func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				calls++
				for _, r := range h.Admit(ctx, ask("b")) {
					if r.Err != nil {
						return false
					}
				}
				return true
			})
			if calls > 40 {
				t.Errorf("%d calls were needed", calls)
			}
		})
	}
}

func TestALostMarkerKeepsTheFenceWhereAnAllowIsUnheard(t *testing.T) {
	t.Parallel()
	const fence = 300 * time.Millisecond
	h := newHouse(t, unlimited(nil), func(o *enforcement.Options) { o.RebuildFence = fence })
	old := ask("old", "1")
	old.WorkspaceID = "another"
	h.admit(t, old)
	start := time.Now()
	eventually(t, "the epoch is older than the fence", func() bool { return time.Since(start) > 2*fence })
	h.admit(t, ask("a", "1"))
	if err := h.redis.Del(t.Context(), prefix+":{ws}:w").Err(); err != nil {
		t.Fatal(err)
	}
	lost := time.Now()
	h.admit(t, ask("b", "1"))
	if took := time.Since(lost); took < fence {
		t.Errorf("opened %s after the loss, want the fence of %s kept: the ledger has not heard of the first yet", took, fence)
	}
}

func TestAClockThatWasSetBackKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	h.admit(t, ask("a", "1"))
	// What a Redis leaves behind whose clock was an hour ahead, and was put right.
	identity, _, _ := strings.Cut(h.redis.Get(t.Context(), prefix+":epoch").Val(), " ")
	ahead := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
	if err := h.redis.Set(t.Context(), prefix+":epoch", identity+" "+ahead, 0).Err(); err != nil {
		t.Fatal(err)
	}
	left := map[string]any{"e": "another epoch", "f": identity + " " + ahead + " " + ahead, "g": "somebody " + ahead}
	if err := h.redis.HSet(t.Context(), prefix+":{ws}:w", left).Err(); err != nil {
		t.Fatal(err)
	}
	h.usage.known = map[string]enforcement.Usage{"epoch-1": {Used: 1}}
	began := time.Now()
	if d := h.admit(t, ask("b", "1")); !d.Allowed || d.Used != 2 {
		t.Errorf("allowed %v, used %d, want the second of the period", d.Allowed, d.Used)
	}
	if took := time.Since(began); took < testFence {
		t.Errorf("opened after %s, want the fence of %s kept", took, testFence)
	}
}

// overtaken is a database during whose read something else happens.
type overtaken struct {
	database
	meanwhile func()
}

func (o *overtaken) Usage(ctx context.Context, workspace, epoch string) (enforcement.Usage, error) {
	known, err := o.database.Usage(ctx, workspace, epoch)
	o.meanwhile()
	return known, err
}

func TestACompletionThatOvertakesARebuildCounts(t *testing.T) {
	t.Parallel()
	usage := &overtaken{}
	h := newHouse(t, unlimited(func(l *schemas.Limits) {
		l.MaxExecutions, l.MaxConcurrentExecutions = schemas.LimitOf(2), schemas.LimitOf(2)
	}), func(o *enforcement.Options) { o.Usage = usage })
	later := time.Now().Add(time.Hour)
	usage.known = map[string]enforcement.Usage{"epoch-1": {Used: 2, Leases: []enforcement.Lease{
		{ExecutionID: "a", ExpiresAt: later, UsageEpoch: "epoch-1"}, {ExecutionID: "b", ExpiresAt: later, UsageEpoch: "epoch-1"},
	}}}
	usage.meanwhile = func() { h.release(t, "a", schemas.OutcomeNotStarted) }
	if d := h.admit(t, ask("c", "1")); !d.Allowed || d.Used != 2 || d.Concurrent != 2 {
		t.Errorf("code %d, used %d, concurrent %d, want the slot and the unit of the first to be free", d.Code, d.Used, d.Concurrent)
	}
	if got := h.release(t, "a", schemas.OutcomeNotStarted); got.Released || got.Refunded {
		t.Errorf("%+v, want nothing freed a second time", got)
	}
}

func TestProgressAfterALossFindsTheExecutionRunning(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(func(l *schemas.Limits) { l.MaxTasksPerExecution = schemas.LimitOf(5) }))
	first := h.admit(t, ask("a", "1"))
	h.usage.known = map[string]enforcement.Usage{"epoch-1": {Used: 1, Peak: 1, Leases: []enforcement.Lease{
		{ExecutionID: "a", ExpiresAt: *first.LeaseExpiresAt, UsageEpoch: "epoch-1", AdmittedAt: first.DecidedAt},
	}}}
	if err := h.redis.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	tasks := int64(6)
	var got enforcement.Extension
	eventually(t, "the workspace is rebuilt", func() bool {
		got = h.Extend(t.Context(), []enforcement.Progress{{WorkspaceID: "ws", ExecutionID: "a", EventID: "p", EventSource: "test", Tasks: &tasks}})[0]
		return !errors.Is(got.Err, enforcement.ErrUnavailable)
	})
	if got.Err != nil || !got.Live || got.Decision == nil || got.Decision.Code != enforcement.CodeTasks {
		t.Errorf("%+v, want it live, and over its tasks", got)
	}
}

func TestProgressOfAWorkspaceWithoutAPlanIsNotPutOff(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	h.plans.err = subscriptions.ErrNotEntitled
	got := h.Extend(t.Context(), []enforcement.Progress{{WorkspaceID: "ws", ExecutionID: "a", EventID: "p", EventSource: "test"}})[0]
	if got.Err != nil || got.Live {
		t.Errorf("%+v, want an execution that has no lease", got)
	}
}
