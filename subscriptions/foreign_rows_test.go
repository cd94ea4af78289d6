package subscriptions_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// foreign writes a period of a subscription to pro as another billing service would, with
// the limits of one of acme's own.
func foreign(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	execute(t, pool, `INSERT INTO subscriptions (id, workspace_id, source, source_id, plan_key, plan_revision, snapshot, kind,
			period_start, period_end, usage_epoch)
		SELECT gen_random_uuid(), 'acme', 'enterprise', 'x', p.plan_key, p.revision,
			jsonb_build_object('plan_key', p.plan_key, 'plan_revision', p.revision, 'limits', s.snapshot->'limits', 'features', '{}'::jsonb),
			'created', now() - interval '1 hour', now() + interval '1 day', 'theirs'
		FROM plan_revisions p, subscriptions s WHERE p.plan_key = 'pro' AND s.workspace_id = 'acme'`)
}

func TestASubscriptionThatSomebodyElseWroteWinsByItsRank(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	follow(t, s, running(t, pool, "sub_1", "free"))
	foreign(t, pool)
	if _, err := s.Invalidate(t.Context(), "acme", "renewed by another"); err != nil {
		t.Fatal(err)
	}
	if info := planInfo(t, s, now(t, pool)); info.Snapshot.PlanKey != "pro" || info.UsageEpoch != "theirs" || info.Revision != 2 {
		t.Errorf("the workspace is on %+v, want pro at revision 2", info)
	}
}

func TestAnInvalidationLeavesAPinAndAHeldPeriodAlone(t *testing.T) {
	t.Parallel()
	_, pool := newStore(t)
	s := subscriptions.NewStore(pool, subscriptions.StoreOptions{Policy: subscriptions.Policy{HoldUnpaid: true}})
	apply(t, s)
	state := running(t, pool, "sub_1", "pro")
	row := follow(t, s, state)
	state = nextPeriod(state)
	state.PaymentState = "pending"
	follow(t, s, state)
	follow(t, s, running(t, pool, "sub_2", "free"))
	if _, err := s.Invalidate(t.Context(), "acme", "by hand"); err != nil {
		t.Fatal(err)
	}
	wantActive(t, s, row.ID, 2)
	assigned := assign(t, s, subscriptions.Assignment{PlanKey: "free"})
	if _, err := s.Invalidate(t.Context(), "acme", "by hand"); err != nil {
		t.Fatal(err)
	}
	wantActive(t, s, assigned.ID, 4)
}

// What the version before billing periods writes, and a service that knows of none.
func TestAPeriodWhoseEndIsMovedByWhoKnowsOfNoBillingPeriods(t *testing.T) {
	t.Parallel()
	for name, days := range map[string]int{"later": 300, "earlier": -10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := newStore(t)
			apply(t, s)
			row := assign(t, s, subscriptions.Assignment{Interval: "40d"})
			end := row.PeriodEnd.AddDate(0, 0, days)
			if _, err := pool.Exec(t.Context(), `UPDATE subscriptions SET period_end = $1`, end); err != nil {
				t.Fatal(err)
			}
			if n := count(t, pool, `SELECT count(*) FROM subscriptions WHERE billing_end = period_end AND due_at <= now()`); n != 1 {
				t.Error("the billing period does not end with the period, or it is not looked at again")
			}
			info := planInfo(t, s, now(t, pool))
			if info.SubscriptionID != row.ID || !info.Period.End.Equal(end) {
				t.Errorf("the period is %+v, want it to end %s", info.Period, end)
			}
			elapse(t, pool, end.Sub(row.PeriodStart)+time.Hour)
			next := planInfo(t, s, now(t, pool))
			if next.SubscriptionID == row.ID || !next.Period.Contains(now(t, pool)) || next.UsageEpoch == row.UsageEpoch {
				t.Errorf("then %+v", next)
			}
			if n := count(t, pool, `SELECT count(*) FROM subscriptions WHERE closed_at IS NULL AND billing_end <> period_end`); n != 0 {
				t.Error("the next period ends before its billing period does")
			}
		})
	}
}

func TestApplyToRunningReachesThePeriodThatStandsIn(t *testing.T) {
	t.Parallel()
	_, pool := newStore(t)
	s := subscriptions.NewStore(pool, subscriptions.StoreOptions{Policy: subscriptions.Policy{HoldUnpaid: true}})
	apply(t, s)
	state := running(t, pool, "sub_1", "pro")
	row := follow(t, s, state)
	state = nextPeriod(state)
	state.PaymentState = "pending"
	follow(t, s, state)
	apply(t, s, "max_executions: -1", "max_executions: 9000")
	if applied := applyToRunning(t, s); applied != (subscriptions.AppliedToRunning{Workspaces: 1, Periods: 2}) {
		t.Errorf("applied %+v", applied)
	}
	if info := planInfo(t, s, now(t, pool)); info.SubscriptionID != row.ID || info.Snapshot.Limits.MaxExecutions != schemas.LimitOf(9000) {
		t.Errorf("the workspace is on %+v", info)
	}
	if again := applyToRunning(t, s); again.Periods != 0 {
		t.Errorf("again: %+v", again)
	}
}

func TestAPeriodThatIsToldOfBeforeItBegins(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	state := running(t, pool, "sub_1", "pro")
	row := follow(t, s, state)
	state.Period.Start = now(t, pool).Add(time.Hour).Truncate(time.Second)
	state.Period.End = state.Period.Start.AddDate(0, 1, 0)
	next := follow(t, s, state)
	before := planInfo(t, s, now(t, pool))
	if before.SubscriptionID != row.ID || !before.Period.End.Equal(next.PeriodStart) {
		t.Errorf("before it begins: %+v", before)
	}
	if next.DueAt == nil || !next.DueAt.Equal(next.PeriodStart) {
		t.Errorf("it is due at %v, want when it begins, %s", next.DueAt, next.PeriodStart)
	}
	// A workspace that had nothing before is on the default plan until then.
	state.WorkspaceID, state.Key.SourceID = "new", "sub_2"
	follow(t, s, state)
	if info, err := s.PlanInfo(t.Context(), "new", now(t, pool)); err != nil || info.SubscriptionID != "" {
		t.Errorf("a first period that is yet to begin: %+v, %v", info, err)
	}
	elapse(t, pool, 2*time.Hour)
	if after := planInfo(t, s, now(t, pool)); after.SubscriptionID != next.ID || after.Revision <= before.Revision {
		t.Errorf("after it began: %+v", after)
	}
}
