package subscriptions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

func applyToRunning(t testing.TB, s *subscriptions.Store) subscriptions.AppliedToRunning {
	t.Helper()
	applied, err := s.ApplyToRunning(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

// onPro puts workspaces w000, w001 … on the plan pro, and then changes the plan.
func onPro(t testing.TB, s *subscriptions.Store, workspaces int) {
	t.Helper()
	apply(t, s)
	for i := range workspaces {
		assign(t, s, subscriptions.Assignment{WorkspaceID: fmt.Sprintf("w%03d", i)})
	}
	apply(t, s, "max_executions: -1", "max_executions: 9000")
}

// wantEachOnce checks that every workspace was amended and announced once.
func wantEachOnce(t testing.TB, pool *pgxpool.Pool, workspaces int64) {
	t.Helper()
	for what, query := range map[string]string{
		"periods with the new terms": `SELECT count(*) FROM subscriptions WHERE snapshot #>> '{limits,max_executions,value}' = '9000' AND plan_revision = 2`,
		"entries about the limit":    `SELECT count(*) FROM subscription_changes WHERE field = 'limits.max_executions'`,
		"announcements":              `SELECT count(*) FROM outbox WHERE body->>'reason' = 'catalog applied to running periods'`,
		"workspaces a revision on":   `SELECT count(*) FROM workspaces WHERE revision = 2`,
	} {
		if n := count(t, pool, query); n != workspaces {
			t.Errorf("%d %s, want %d", n, what, workspaces)
		}
	}
}

func TestApplyToRunningChangesTheTermsAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	free := follow(t, s, running(t, pool, "sub_1", "free"))
	row := assign(t, s, subscriptions.Assignment{})
	override(t, s, subscriptions.OverrideChange{Set: limits{"max_concurrent_executions": schemas.LimitOf(99)}})
	apply(t, s, "max_executions: -1", "max_executions: 9000", "max_concurrent_executions: 20", "max_concurrent_executions: 30")
	if info := planInfo(t, s, now(t, pool)); info.Snapshot.PlanRevision != 1 || info.Snapshot.Limits.MaxExecutions != schemas.Unlimited {
		t.Fatalf("an apply alone changes a running period: %+v", info.Snapshot)
	}

	var seen [][2]int
	applied, err := s.ApplyToRunning(t.Context(), func(done, total int) { seen = append(seen, [2]int{done, total}) })
	if err != nil || applied != (subscriptions.AppliedToRunning{Workspaces: 1, Periods: 1}) {
		t.Errorf("applied %+v, %v", applied, err)
	}
	if diff := cmp.Diff([][2]int{{1, 1}}, seen); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	info := planInfo(t, s, now(t, pool))
	if info.SubscriptionID != row.ID || info.UsageEpoch != row.UsageEpoch || !info.Period.Start.Equal(row.PeriodStart) || info.Revision != 4 {
		t.Errorf("plan info is %+v, want the same period and usage at revision 4", info)
	}
	if info.Snapshot.PlanRevision != 2 || info.Snapshot.Limits.MaxExecutions != schemas.LimitOf(9000) ||
		info.Snapshot.Limits.MaxConcurrentExecutions != schemas.LimitOf(99) || !info.Snapshot.IsOverridden("max_concurrent_executions") {
		t.Errorf("terms are %+v, want the new quota and the override", info.Snapshot)
	}
	for _, h := range history(t, s, "acme") {
		if h.ID == free.ID && (h.PlanRevision != 1 || slices.ContainsFunc(h.Changes, func(c subscriptions.Change) bool {
			return c.Cause != "a test" && !strings.HasPrefix(c.Cause, "override")
		})) {
			t.Errorf("the period on a plan that did not change was amended: %+v", h.Changes)
		}
		if h.ID == row.ID && !slices.Contains(changeLines(h.Changes), "limits.max_executions: unlimited -> 9000 (plans apply --to-running)") {
			t.Errorf("audit trail is %q", changeLines(h.Changes))
		}
	}
	// What the override hides is the new plan's value.
	override(t, s, subscriptions.OverrideChange{Clear: []string{"max_concurrent_executions"}})
	if got := planInfo(t, s, now(t, pool)).Snapshot.Limits.MaxConcurrentExecutions; got != schemas.LimitOf(30) {
		t.Errorf("cleared, the limit is %s, want the new plan's 30", got)
	}
	if again := applyToRunning(t, s); again != (subscriptions.AppliedToRunning{}) {
		t.Errorf("applied again to %+v", again)
	}
}

func TestApplyToRunningLeavesAPlanThatLeftTheCatalog(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	assign(t, s, subscriptions.Assignment{})
	if _, err := s.ApplyCatalog(t.Context(), parse(t, withoutPro())); err != nil {
		t.Fatal(err)
	}
	if applied := applyToRunning(t, s); applied.Periods != 0 {
		t.Errorf("applied %+v", applied)
	}
	if info := planInfo(t, s, now(t, pool)); info.Snapshot.PlanKey != "pro" || info.Snapshot.PlanRevision != 1 {
		t.Errorf("the workspace is on %+v", info.Snapshot)
	}
}

func TestApplyToRunningBringsAQuotaInterval(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	row := assign(t, s, subscriptions.Assignment{Interval: "year"})
	apply(t, s, "rank: 10", "rank: 10\n    quota_interval: month")
	applyToRunning(t, s)
	info := planInfo(t, s, now(t, pool))
	if info.SubscriptionID != row.ID || info.UsageEpoch != row.UsageEpoch || !info.Period.End.Equal(subscriptions.Monthly.Period(row.PeriodStart, row.PeriodStart).End) {
		t.Errorf("plan info is %+v, want the same row and usage until a month after %s", info, row.PeriodStart)
	}
}

func TestApplyToRunningElectsByTheNewRanks(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	free := follow(t, s, running(t, pool, "sub_1", "free"))
	pro := follow(t, s, running(t, pool, "sub_2", "pro"))
	wantActive(t, s, pro.ID, 2)
	apply(t, s, "rank: 0", "rank: 11")
	applyToRunning(t, s)
	wantActive(t, s, free.ID, 3)
}

func TestApplyToRunningCutShortIsFinishedByAnother(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	const workspaces, done = 12, 5
	onPro(t, s, workspaces)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first, err := s.ApplyToRunning(ctx, func(n, total int) {
		if total != workspaces {
			t.Errorf("%d are due, want %d", total, workspaces)
		}
		if n == done {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || first.Workspaces != done {
		t.Fatalf("cut short it is %+v, %v, want %d done", first, err, done)
	}
	if rest := applyToRunning(t, s); rest.Workspaces != workspaces-done {
		t.Errorf("the second call did %d, want the %d that were left", rest.Workspaces, workspaces-done)
	}
	wantEachOnce(t, pool, workspaces)
}

func TestTwoAppliesToRunningShareTheWork(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	const workspaces = 30
	onPro(t, s, workspaces)
	var (
		total atomic.Int64
		wg    sync.WaitGroup
	)
	for range 3 {
		wg.Go(func() {
			applied, err := s.ApplyToRunning(t.Context(), nil)
			if err != nil {
				t.Error(err)
			}
			total.Add(int64(applied.Workspaces))
		})
	}
	wg.Wait()
	if total.Load() != workspaces {
		t.Errorf("they did %d workspaces together, want %d", total.Load(), workspaces)
	}
	wantEachOnce(t, pool, workspaces)
}

func TestApplyToRunningGoesPastAWorkspaceThatFails(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	onPro(t, s, 4)
	if _, err := pool.Exec(t.Context(), `UPDATE subscriptions SET snapshot = '{}' WHERE workspace_id = 'w001'`); err != nil {
		t.Fatal(err)
	}
	applied, err := s.ApplyToRunning(t.Context(), nil)
	if applied.Workspaces != 3 || err == nil || !strings.Contains(err.Error(), "workspace w001") {
		t.Errorf("applied %+v, %v, want three and the name of the fourth", applied, err)
	}
}

func TestApplyToRunningDuringRenewalsAndOverridesLosesNothing(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	const workspaces = 15
	onPro(t, s, workspaces)
	var wg sync.WaitGroup
	for i := range workspaces {
		name := fmt.Sprintf("w%03d", i)
		wg.Go(func() {
			_, err := s.ChangeOverrides(t.Context(), subscriptions.OverrideChange{
				WorkspaceID: name, Set: limits{"max_storage_mb": schemas.LimitOf(5)}, Reason: "race",
			})
			if err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := s.Assign(t.Context(), subscriptions.Assignment{WorkspaceID: name, PlanKey: "pro", NewPeriod: true}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Go(func() {
		if _, err := s.ApplyToRunning(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	if n := count(t, pool, `SELECT count(*) FROM subscriptions WHERE closed_at IS NULL AND plan_revision = 2
		AND snapshot #>> '{limits,max_executions,value}' = '9000' AND snapshot #>> '{limits,max_storage_mb,value}' = '5'`); n != workspaces {
		t.Errorf("%d open periods have the new terms and the override, want all %d", n, workspaces)
	}
}
