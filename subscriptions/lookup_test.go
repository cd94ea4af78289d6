package subscriptions_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/subscriptions"
)

func planInfo(t testing.TB, s *subscriptions.Store, at time.Time) subscriptions.PlanInfo {
	t.Helper()
	info, err := s.PlanInfo(t.Context(), "acme", at)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// now is the database's clock.
func now(t testing.TB, pool *pgxpool.Pool) time.Time {
	t.Helper()
	var at time.Time
	if err := pool.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&at); err != nil {
		t.Fatal(err)
	}
	return at.UTC()
}

// assignOver puts acme on a plan whose periods last an hour, the last one of
// which ended half an hour ago, as nobody asked for it since.
func assignOver(t testing.TB, s *subscriptions.Store, pool *pgxpool.Pool) subscriptions.Subscription {
	t.Helper()
	start := now(t, pool).Add(-90 * time.Minute)
	return assign(t, s, subscriptions.Assignment{Interval: "1h", Start: &start, Now: start.Add(time.Minute)})
}

func TestPlanInfoWithoutSubscriptionIsTheDefaultPlan(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	if _, err := s.PlanInfo(t.Context(), "acme", noon); !errors.Is(err, subscriptions.ErrNoDefaultPlan) {
		t.Errorf("without a catalog: %v", err)
	}
	apply(t, s)
	before := now(t, pool)
	got := planInfo(t, s, noon)
	plan := parse(t, twoPlans).Plans[0]
	want := subscriptions.PlanInfo{
		WorkspaceID: "acme", UsageEpoch: "default.2026-11", Period: november, Status: "none", Exact: true,
		Snapshot: subscriptions.Snapshot{PlanKey: "free", PlanRevision: 1, Limits: plan.Limits, Features: plan.Features},
	}
	if diff := cmp.Diff(want, got, compareLimits, cmpopts.IgnoreFields(subscriptions.PlanInfo{}, "ReadAt")); diff != "" {
		t.Errorf("plan info (-want +got):\n%s", diff)
	}
	if got.ReadAt.Before(before) || got.ReadAt.After(now(t, pool)) {
		t.Errorf("read at %s, which is not now", got.ReadAt)
	}
	if december := planInfo(t, s, november.End); december.UsageEpoch != "default.2026-12" || !december.Period.Contains(november.End) {
		t.Errorf("in December: %+v", december)
	}
	if n := count(t, pool, `SELECT count(*) FROM workspaces`); n != 0 {
		t.Error("a lookup made a workspace")
	}
}

func TestPlanInfoMayRefuseUnknownWorkspaces(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	strict := subscriptions.NewStore(pool, subscriptions.StoreOptions{DenyUnknown: true})
	if _, err := strict.PlanInfo(t.Context(), "acme", noon); !errors.Is(err, subscriptions.ErrNotEntitled) {
		t.Errorf("an unknown workspace: %v", err)
	}
	row := assign(t, s, subscriptions.Assignment{Now: noon})
	if got := planInfo(t, strict, noon); got.SubscriptionID != row.ID {
		t.Errorf("a known workspace: %+v", got)
	}
	execute(t, pool, `UPDATE workspaces SET active_subscription_id = NULL`)
	if got := planInfo(t, strict, noon); got.Snapshot.PlanKey != "free" {
		t.Errorf("a known workspace without a subscription: %+v", got)
	}
}

func TestPlanInfoIsTheRunningPeriod(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	apply(t, s)
	row := assign(t, s, subscriptions.Assignment{})
	assign(t, s, subscriptions.Assignment{})
	for _, at := range []time.Time{row.PeriodStart, row.PeriodEnd.Add(-1)} {
		want := subscriptions.PlanInfo{
			WorkspaceID: "acme", Revision: 2, SubscriptionID: row.ID, UsageEpoch: row.UsageEpoch,
			Period: row.Period(), Snapshot: row.Snapshot, Status: "active", Exact: true,
		}
		if diff := cmp.Diff(want, planInfo(t, s, at), compareLimits, cmpopts.IgnoreFields(subscriptions.PlanInfo{}, "ReadAt")); diff != "" {
			t.Errorf("plan info at %s (-want +got):\n%s", at, diff)
		}
	}
}

func TestPlanInfoNeverServesAPeriodThatIsNotRunning(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	row := assign(t, s, subscriptions.Assignment{})
	for name, at := range map[string]time.Time{
		"a clock behind the row's start":    row.PeriodStart.Add(-1),
		"a clock ahead of the database's":   row.PeriodEnd,
		"a clock that is a year in advance": row.PeriodEnd.AddDate(1, 0, 0),
	} {
		if info, err := s.PlanInfo(t.Context(), "acme", at); !errors.Is(err, subscriptions.ErrPeriodNotStarted) {
			t.Errorf("%s: %+v, %v; want ErrPeriodNotStarted", name, info, err)
		}
	}
	if n := count(t, pool, `SELECT count(*) FROM subscriptions`); n != 1 {
		t.Errorf("%d rows: a wrong clock opened a period", n)
	}
}

func TestPlanInfoRenewsAPeriodThatIsOver(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	old := assignOver(t, s, pool)

	// By a clock that is still inside it, the old period counts.
	if inside := planInfo(t, s, old.PeriodEnd.Add(-1)); inside.SubscriptionID != old.ID || inside.Revision != 1 {
		t.Errorf("inside the old period: %+v", inside)
	}
	got := planInfo(t, s, now(t, pool))
	if got.SubscriptionID == old.ID || got.UsageEpoch == old.UsageEpoch || got.Revision != 2 {
		t.Errorf("after the old period: %+v", got)
	}
	if want := (subscriptions.Period{Start: old.PeriodEnd, End: old.PeriodEnd.Add(time.Hour)}); got.Period != want {
		t.Errorf("period is %v, want %v", got.Period, want)
	}
	rows := history(t, s, "acme")
	if len(rows) != 2 || rows[0].ID != got.SubscriptionID || rows[0].Kind != "cycle" || *rows[0].PreviousID != old.ID ||
		!rows[0].Anchor.Equal(old.Anchor) || !rows[1].ClosedAt.Equal(old.PeriodEnd) {
		t.Errorf("history is %+v", rows)
	}
	if again := planInfo(t, s, now(t, pool)); again.SubscriptionID != got.SubscriptionID || again.Revision != 2 {
		t.Errorf("asked again: %+v", again)
	}
	if _, err := s.PlanInfo(t.Context(), "acme", old.PeriodEnd.Add(-1)); !errors.Is(err, subscriptions.ErrPeriodNotStarted) {
		t.Errorf("a clock that is still in the closed period: %v", err)
	}
}

func TestPlanInfoRenewsOnceForAnyNumberOfReaders(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	assignOver(t, s, pool)
	at := now(t, pool)
	ids := make([]string, 8)
	var readers sync.WaitGroup
	for i := range ids {
		readers.Go(func() {
			info, err := s.PlanInfo(t.Context(), "acme", at)
			if err != nil {
				t.Error(err)
			}
			ids[i] = info.SubscriptionID
		})
	}
	readers.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("readers are on %v", ids)
			break
		}
	}
	if w := workspace(t, s, "acme"); w.Revision != 2 {
		t.Errorf("revision is %d, want 2", w.Revision)
	}
	if n := count(t, pool, `SELECT count(*) FROM subscriptions`); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}

func TestPlanInfoInventsNoSkippedPeriods(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	at := now(t, pool)
	start := at.AddDate(-1, 0, 0)
	old := assign(t, s, subscriptions.Assignment{Interval: "10d", Start: &start, Now: start.Add(time.Hour)})
	got := planInfo(t, s, at)
	if !got.Period.Contains(at) || got.Period.End.Sub(got.Period.Start) != 10*24*time.Hour || got.Period.Start.Sub(old.PeriodStart)%(10*24*time.Hour) != 0 {
		t.Errorf("period is %v, anchored at %s", got.Period, old.Anchor)
	}
	rows := history(t, s, "acme")
	if len(rows) != 2 || !rows[1].ClosedAt.Equal(got.Period.Start) || !rows[1].PeriodEnd.Equal(old.PeriodEnd) {
		t.Errorf("history is %+v", rows)
	}
}

func TestPlanInfoRenewsOnTheNewestTerms(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	assignOver(t, s, pool)
	apply(t, s, "max_concurrent_executions: 20", "max_concurrent_executions: 30")
	if got := planInfo(t, s, now(t, pool)); got.Snapshot.PlanRevision != 2 {
		t.Errorf("renewed on revision %d, want 2", got.Snapshot.PlanRevision)
	}
}

func TestPlanInfoRenewsOnTheLastTermsOfARemovedPlan(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	old := assignOver(t, s, pool)
	if _, err := s.ApplyCatalog(t.Context(), parse(t, withoutPro())); err != nil {
		t.Fatal(err)
	}
	got := planInfo(t, s, now(t, pool))
	if got.SubscriptionID == old.ID {
		t.Fatal("the period was not renewed")
	}
	if diff := cmp.Diff(old.Snapshot, got.Snapshot, compareLimits); diff != "" {
		t.Errorf("terms (-before +after):\n%s", diff)
	}
}

func TestPlanInfoFallsToTheDefaultPlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end string
		// revision is 2 where the lookup takes the pointer from what counts no longer.
		revision int64
	}{
		"when the row was closed":             {`UPDATE subscriptions SET closed_at = now()`, 2},
		"when the pointer was taken away":     {`UPDATE workspaces SET active_subscription_id = NULL`, 1},
		"when it is over and does not renew":  {`UPDATE subscriptions SET "interval" = NULL, anchor = NULL`, 2},
		"when closed, over and not to renew ": {`UPDATE subscriptions SET "interval" = NULL, closed_at = period_end`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := newStore(t)
			apply(t, s)
			assignOver(t, s, pool)
			execute(t, pool, c.end)
			at := now(t, pool)
			got := planInfo(t, s, at)
			if got.SubscriptionID != "" || got.Snapshot.PlanKey != "free" || got.Revision != c.revision || got.Period != subscriptions.CalendarMonth(at) {
				t.Errorf("plan info is %+v", got)
			}
			if n := count(t, pool, `SELECT count(*) FROM subscriptions`); n != 1 {
				t.Errorf("%d rows: it was renewed", n)
			}
		})
	}
}

func TestPlanInfoTakesNoFaultForAnAnswer(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	row := assign(t, s, subscriptions.Assignment{})
	for _, snapshot := range []string{
		`{}`, `[]`, `{"plan_key": "pro", "plan_revision": 1, "limits": {"max_executions": {"value": 1, "unlimited": false}}}`,
	} {
		execute(t, pool, `UPDATE subscriptions SET snapshot = '`+snapshot+`'`)
		info, err := s.PlanInfo(t.Context(), "acme", row.PeriodStart)
		if err == nil || !strings.Contains(err.Error(), "subscription "+row.ID+": decode snapshot") {
			t.Errorf("snapshot %s: %+v, %v; want an error that names the row", snapshot, info, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if info, err := s.PlanInfo(ctx, "nobody", noon); !errors.Is(err, context.Canceled) {
		t.Errorf("a read that failed: %+v, %v", info, err)
	}
	execute(t, pool, `ALTER TABLE plan_revisions RENAME TO gone`)
	if info, err := s.PlanInfo(t.Context(), "nobody", noon); err == nil {
		t.Errorf("a read without its table: %+v", info)
	}
}

func TestCacheOverTheStoreReadsItsOwnUpgrade(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	apply(t, s)
	c := subscriptions.NewCache(s.PlanInfo, subscriptions.CacheOptions{})
	for i, plan := range []string{"free", "pro", "free"} {
		row := assign(t, s, subscriptions.Assignment{PlanKey: plan})
		c.Invalidate("acme", workspace(t, s, "acme").Revision)
		got, err := c.Lookup(t.Context(), "acme", row.PeriodStart)
		if err != nil || got.Snapshot.PlanKey != plan || got.Revision != int64(i+1) {
			t.Errorf("after assigning %s: %s, revision %d, %v", plan, got.Snapshot.PlanKey, got.Revision, err)
		}
	}
}

func execute(t testing.TB, pool *pgxpool.Pool, statement string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkPlanInfo(b *testing.B) {
	s, _ := newStore(b)
	apply(b, s)
	row := assign(b, s, subscriptions.Assignment{})
	for b.Loop() {
		if _, err := s.PlanInfo(b.Context(), "acme", row.PeriodStart); err != nil {
			b.Fatal(err)
		}
	}
}
