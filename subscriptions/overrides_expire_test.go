package subscriptions_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// lapse moves all expiries into the past, as time would.
func lapse(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	for _, statement := range []string{
		`UPDATE plan_overrides SET expires_at = now() - interval '1 second' WHERE expires_at IS NOT NULL`,
		`UPDATE subscriptions SET snapshot = jsonb_set(snapshot, '{overrides,0,until}', to_jsonb(now() - interval '1 second'))
			WHERE snapshot #> '{overrides,0,until}' IS NOT NULL`,
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnExpiredOverrideIsNeverUsed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		plan string
		own  schemas.Limit
	}{
		"on a subscription": {"pro", schemas.Unlimited},
		"on the default":    {"", schemas.LimitOf(100)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := newStore(t)
			apply(t, s)
			if test.plan != "" {
				assign(t, s, subscriptions.Assignment{Interval: "year"})
			}
			// Both expire before the default plan's month is over.
			began := now(t, pool)
			step := min(time.Hour, subscriptions.CalendarMonth(began).End.Sub(began)/3)
			until := began.Add(step)
			later := until.Add(step)
			override(t, s, subscriptions.OverrideChange{Set: limits{"max_executions": schemas.LimitOf(5)}, Until: &until})
			override(t, s, subscriptions.OverrideChange{Set: limits{"features.automations": schemas.LimitOf(8)}, Until: &later})
			until, later = until.Truncate(time.Microsecond), later.Truncate(time.Microsecond)

			for at, want := range map[time.Time]struct {
				executions  schemas.Limit
				automations bool
				validUntil  time.Time
			}{
				now(t, pool):                {schemas.LimitOf(5), true, until},
				until.Add(-1):               {schemas.LimitOf(5), true, until},
				until:                       {test.own, true, later},
				later:                       {test.own, false, time.Time{}},
				later.Add(10 * time.Second): {test.own, false, time.Time{}},
			} {
				got := planInfo(t, s, at)
				if got.Snapshot.Limits.MaxExecutions != want.executions || !got.ValidUntil.Equal(want.validUntil) ||
					got.Snapshot.IsOverridden("features.automations") != want.automations {
					t.Errorf("%s before the first expiry: %+v valid until %s, want %+v", until.Sub(at), got.Snapshot, got.ValidUntil, want)
				}
			}
		})
	}
}

func TestOverridesExpireByThemselves(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	row := assign(t, s, subscriptions.Assignment{})
	until := now(t, pool).Add(200 * time.Millisecond)
	override(t, s, subscriptions.OverrideChange{Set: limits{"max_executions": schemas.LimitOf(5)}, Until: &until, Reason: "trial run"})
	override(t, s, subscriptions.OverrideChange{Set: limits{"max_storage_mb": schemas.LimitOf(6)}})

	deadline, ticker := time.After(20*time.Second), time.NewTicker(20*time.Millisecond)
	defer ticker.Stop()
	for expired := 0; expired == 0; {
		select {
		case <-deadline:
			t.Fatal("the override did not expire")
		case <-ticker.C:
		}
		var err error
		if expired, err = s.ExpireOverrides(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	if at := now(t, pool); at.Before(until) {
		t.Errorf("it expired %s early", until.Sub(at))
	}
	wantActive(t, s, row.ID, 4)
	open := history(t, s, "acme")[0]
	if open.Snapshot.Limits.MaxExecutions != schemas.Unlimited || open.Snapshot.Limits.MaxStorageMB != schemas.LimitOf(6) || len(open.Snapshot.Overrides) != 1 {
		t.Errorf("the open row has %+v", open.Snapshot)
	}
	lines := strings.Join(changeLines(open.Changes), "\n")
	if !strings.Contains(lines, "limits.max_executions: 5 -> unlimited (override expired)") {
		t.Errorf("the audit trail has no expiry:\n%s", lines)
	}
	live, err := s.Overrides(t.Context(), "acme")
	if err != nil || len(live) != 1 || live[0].Field != "max_storage_mb" {
		t.Errorf("overrides are %+v, %v", live, err)
	}
	wantTold(t, pool, "renewed created", "invalidated 1", "invalidated 2", "invalidated 3", "invalidated 4")
	if again, err := s.ExpireOverrides(t.Context(), 0); again != 0 || err != nil {
		t.Errorf("expired again for %d workspaces, %v", again, err)
	}
}

func TestExpiredOverridesAreDividedAmongWorkers(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	const workspaces, workers = 60, 4
	until := now(t, pool).Add(time.Hour)
	for i := range workspaces {
		name := fmt.Sprintf("w%02d", i)
		if i%2 == 0 {
			assign(t, s, subscriptions.Assignment{WorkspaceID: name})
		}
		override(t, s, subscriptions.OverrideChange{WorkspaceID: name, Set: limits{"max_executions": schemas.LimitOf(5)}, Until: &until})
	}
	lapse(t, pool)
	var (
		total atomic.Int64
		wg    sync.WaitGroup
	)
	for range workers {
		wg.Go(func() {
			for {
				n, err := s.ExpireOverrides(context.WithoutCancel(t.Context()), 7)
				if err != nil {
					t.Error(err)
				}
				total.Add(int64(n))
				if n < 7 {
					return
				}
			}
		})
	}
	wg.Wait()
	if total.Load() != workspaces {
		t.Errorf("%d workspaces were looked after, want each of %d once", total.Load(), workspaces)
	}
	if n := count(t, pool, `SELECT count(*) FROM outbox WHERE body->>'reason' = 'override expired'`); n != workspaces {
		t.Errorf("%d were announced, want %d", n, workspaces)
	}
	if n := count(t, pool, `SELECT count(*) FROM subscriptions WHERE snapshot ? 'overrides'`); n != 0 {
		t.Errorf("%d open rows still have the override", n)
	}
}

func TestAWorkspaceThatCannotExpireHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	until := now(t, pool).Add(time.Hour)
	for _, name := range []string{"broken", "sound"} {
		assign(t, s, subscriptions.Assignment{WorkspaceID: name})
		override(t, s, subscriptions.OverrideChange{WorkspaceID: name, Set: limits{"max_executions": schemas.LimitOf(5)}, Until: &until})
	}
	lapse(t, pool)
	if _, err := pool.Exec(t.Context(), `UPDATE subscriptions SET snapshot = '{}' WHERE workspace_id = 'broken'`); err != nil {
		t.Fatal(err)
	}
	n, err := s.ExpireOverrides(t.Context(), 0)
	if n != 1 || err == nil || !strings.Contains(err.Error(), "workspace broken") {
		t.Errorf("%d expired, %v; want one and the name of the other", n, err)
	}
	if left := count(t, pool, `SELECT count(*) FROM plan_overrides`); left != 1 {
		t.Errorf("%d overrides are left, want the broken workspace's", left)
	}
}

func TestAnOverrideSetDuringARenewalIsInTheNewPeriod(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	const workspaces = 20
	start := now(t, pool).Add(-90 * time.Minute)
	for i := range workspaces {
		assign(t, s, subscriptions.Assignment{WorkspaceID: fmt.Sprintf("w%02d", i), Interval: "1h", Start: &start, Now: start.Add(time.Minute)})
	}
	at := now(t, pool)
	var wg sync.WaitGroup
	for i := range workspaces {
		name := fmt.Sprintf("w%02d", i)
		wg.Go(func() {
			if _, err := s.PlanInfo(t.Context(), name, at); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			_, err := s.ChangeOverrides(t.Context(), subscriptions.OverrideChange{
				WorkspaceID: name, Set: limits{"max_executions": schemas.LimitOf(5)}, Reason: "race",
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := count(t, pool, `SELECT count(*) FROM subscriptions WHERE closed_at IS NULL AND period_end > now()
		AND snapshot #>> '{limits,max_executions,value}' = '5' AND snapshot #>> '{overrides,0,field}' = 'max_executions'`); n != workspaces {
		t.Errorf("%d current periods have the override, want all %d", n, workspaces)
	}
	if n := count(t, pool, `SELECT count(*) FROM workspaces WHERE revision <> 3`); n != 0 {
		t.Errorf("%d workspaces have a revision other than that of an assignment, a renewal and an override", n)
	}
}
