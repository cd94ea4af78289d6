package subscriptions_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

type limits = map[string]schemas.Limit

func override(t testing.TB, s *subscriptions.Store, c subscriptions.OverrideChange) []subscriptions.Override {
	t.Helper()
	if c.WorkspaceID == "" {
		c.WorkspaceID = "acme"
	}
	if len(c.Set)+len(c.Switch) > 0 && c.Reason == "" {
		c.Reason = "a test"
	}
	live, err := s.ChangeOverrides(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// changeLines are a period's amendments as "field: from -> to (cause)".
func changeLines(changes []subscriptions.Change) []string {
	var lines []string
	for _, c := range changes {
		lines = append(lines, c.Field+": "+c.From+" -> "+c.To+" ("+c.Cause+")")
	}
	return lines
}

func TestAnOverrideAppliesToTheRunningPeriodAtOnce(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	other := follow(t, s, running(t, pool, "sub_1", "free"))
	row := assign(t, s, subscriptions.Assignment{})
	const revision = 2
	wantActive(t, s, row.ID, revision)

	live := override(t, s, subscriptions.OverrideChange{
		Set:    limits{"max_executions": schemas.LimitOf(500), "features.automations": schemas.Unlimited},
		Reason: "pilot customer", Cause: "ann",
	})
	if len(live) != 2 || live[0].Field != "features.automations" || live[1].Value != schemas.LimitOf(500) ||
		live[1].Reason != "pilot customer" || live[1].SetBy != "ann" || live[1].ExpiresAt != nil {
		t.Errorf("overrides are %+v", live)
	}
	wantActive(t, s, row.ID, revision+1)
	got := planInfo(t, s, now(t, pool))
	if got.SubscriptionID != row.ID || got.UsageEpoch != row.UsageEpoch || got.Revision != revision+1 || !got.ValidUntil.IsZero() {
		t.Errorf("plan info is %+v, want the same period and usage", got)
	}
	plan := parse(t, twoPlans).Plans[1]
	want := plan.Limits
	want.MaxExecutions = schemas.LimitOf(500)
	if diff := cmp.Diff(want, got.Snapshot.Limits, compareLimits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if got.Snapshot.Features["automations"] != schemas.Unlimited || got.Snapshot.Features["record_groups"] != plan.Features["record_groups"] {
		t.Errorf("features are %v", got.Snapshot.Features)
	}
	for field, own := range map[string]bool{
		"max_executions": true, "max_storage_mb": false, "features.automations": true, "features.record_groups": false,
	} {
		if got.Snapshot.IsOverridden(field) != own {
			t.Errorf("%s is the workspace's own: %t, want %t", field, !own, own)
		}
	}
	wantLines := []string{
		"limits.max_executions: unlimited -> 500 (ann: pilot customer)",
		"features.automations: 0 -> unlimited (ann: pilot customer)",
		"overrides.features.automations:  -> unlimited (ann: pilot customer)",
		"overrides.max_executions:  -> 500 (ann: pilot customer)",
	}
	for _, h := range history(t, s, "acme") {
		if h.ID == row.ID {
			if diff := cmp.Diff(wantLines, changeLines(h.Changes)); diff != "" {
				t.Errorf("audit trail (-want +got):\n%s", diff)
			}
		}
		if h.ID == other.ID && h.Snapshot.Limits.MaxExecutions != schemas.LimitOf(500) {
			t.Error("the open period that does not count now would count without the override")
		}
	}
	wantTold(t, pool, "renewed created", "invalidated 1", "renewed created", "invalidated 2", "invalidated 3")
}

func TestEveryLaterPeriodHasTheOverrides(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(t *testing.T, s *subscriptions.Store, pool *pgxpool.Pool){
		"a period opened by hand": func(t *testing.T, s *subscriptions.Store, _ *pgxpool.Pool) {
			t.Helper()
			assign(t, s, subscriptions.Assignment{NewPeriod: true})
		},
		"another plan in mid-period": func(t *testing.T, s *subscriptions.Store, _ *pgxpool.Pool) {
			t.Helper()
			assign(t, s, subscriptions.Assignment{})
			assign(t, s, subscriptions.Assignment{PlanKey: "free"})
		},
		"another source": func(t *testing.T, s *subscriptions.Store, pool *pgxpool.Pool) {
			t.Helper()
			state := running(t, pool, "sub_9", "pro")
			follow(t, s, state)
			assign(t, s, subscriptions.Assignment{Source: subscriptions.SourceSystem})
		},
		"a renewal": func(*testing.T, *subscriptions.Store, *pgxpool.Pool) {},
		"a renewal of a plan that left the catalog": func(t *testing.T, s *subscriptions.Store, _ *pgxpool.Pool) {
			t.Helper()
			if _, err := s.ApplyCatalog(t.Context(), parse(t, withoutPro())); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := newStore(t)
			apply(t, s)
			before := assignOver(t, s, pool)
			override(t, s, subscriptions.OverrideChange{Set: limits{"max_executions": schemas.LimitOf(7)}})
			next(t, s, pool)
			if id := planInfo(t, s, now(t, pool)).SubscriptionID; id == before.ID {
				t.Fatal("there is no other period")
			}
			got := planInfo(t, s, now(t, pool)).Snapshot
			if got.Limits.MaxExecutions != schemas.LimitOf(7) || !got.IsOverridden("max_executions") || len(got.Overrides) != 1 {
				t.Errorf("after period %s: %+v", before.ID, got)
			}
			override(t, s, subscriptions.OverrideChange{Clear: []string{"max_executions"}})
			plan := parse(t, twoPlans).Plans[1]
			if got.PlanKey == "free" {
				plan = parse(t, twoPlans).Plans[0]
			}
			got = planInfo(t, s, now(t, pool)).Snapshot
			if got.Limits.MaxExecutions != plan.Limits.MaxExecutions || got.Overrides != nil {
				t.Errorf("cleared, it is %+v", got)
			}
		})
	}
}

func TestAnOverrideReachesThePeriodThatStandsInForAnUnpaidOne(t *testing.T) {
	t.Parallel()
	_, pool := newStore(t)
	s := subscriptions.NewStore(pool, subscriptions.StoreOptions{Policy: subscriptions.Policy{HoldUnpaid: true}})
	apply(t, s)
	held := running(t, pool, "sub_1", "pro")
	paid := held
	paid.Period = subscriptions.Period{Start: held.Period.Start.AddDate(0, -1, 0), End: held.Period.Start}
	first := follow(t, s, paid)
	held.PaymentState = "pending"
	second := follow(t, s, held)
	override(t, s, subscriptions.OverrideChange{Set: limits{"max_executions": schemas.LimitOf(7)}})
	got := planInfo(t, s, now(t, pool))
	if got.SubscriptionID != first.ID || got.Snapshot.Limits.MaxExecutions != schemas.LimitOf(7) {
		t.Errorf("while the next one is unpaid: %+v", got)
	}
	held.PaymentState = "paid"
	follow(t, s, held)
	got = planInfo(t, s, now(t, pool))
	if got.SubscriptionID != second.ID || got.Snapshot.Limits.MaxExecutions != schemas.LimitOf(7) {
		t.Errorf("once it is paid: %+v", got)
	}
}

func TestOverridesOnTheDefaultPlan(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s, "automations: 0", "automations: 0\n      seats: 2")
	override(t, s, subscriptions.OverrideChange{Set: limits{
		"max_executions": schemas.LimitOf(3), "max_storage_mb": schemas.Unlimited, "features.seats": schemas.LimitOf(9),
	}})
	got := planInfo(t, s, noon)
	plan := parse(t, twoPlans).Plans[0]
	want := plan.Limits
	want.MaxExecutions, want.MaxStorageMB = schemas.LimitOf(3), schemas.Unlimited
	if diff := cmp.Diff(want, got.Snapshot.Limits, compareLimits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if got.Revision != 1 || got.SubscriptionID != "" || got.UsageEpoch != "default.2026-11" || got.Snapshot.Features["seats"] != schemas.LimitOf(9) {
		t.Errorf("plan info is %+v", got)
	}
	wantTold(t, pool, "invalidated 1")

	// A new catalog shows through.
	apply(t, s, "max_concurrent_executions: 2", "max_concurrent_executions: 4", "max_executions: 100", "max_executions: 200")
	got = planInfo(t, s, noon)
	if got.Snapshot.Limits.MaxConcurrentExecutions != schemas.LimitOf(4) || got.Snapshot.Limits.MaxExecutions != schemas.LimitOf(3) {
		t.Errorf("after a new catalog: %+v", got.Snapshot)
	}
	override(t, s, subscriptions.OverrideChange{Clear: []string{"features.seats", "max_executions"}})
	got = planInfo(t, s, noon)
	if _, included := got.Snapshot.Features["seats"]; included || got.Snapshot.Limits.MaxExecutions != schemas.LimitOf(200) || got.Revision != 2 {
		t.Errorf("cleared: %+v", got)
	}
}

func TestOverridesMayBeRefused(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	override(t, s, subscriptions.OverrideChange{Set: limits{"max_executions": schemas.LimitOf(5)}})
	past := now(t, pool).Add(-time.Second)
	one := limits{"max_executions": schemas.LimitOf(1)}
	for name, test := range map[string]struct {
		change subscriptions.OverrideChange
		says   []string
	}{
		"nothing to do":           {subscriptions.OverrideChange{}, []string{"nothing to set or to clear"}},
		"a clearing that expires": {subscriptions.OverrideChange{Clear: []string{"max_executions"}, Until: new(past.Add(time.Hour))}, []string{"until: nothing is set"}},
		"no reason":               {subscriptions.OverrideChange{Set: one}, []string{"reason: is missing"}},
		"a blank reason":          {subscriptions.OverrideChange{Set: one, Reason: " \t"}, []string{"reason: is missing"}},
		"a limit misspelt":        {subscriptions.OverrideChange{Set: limits{"max_excutions": {}}, Reason: "x"}, []string{"max_excutions: is no limit; the limits are max_executions, max_concurrent", "features.NAME"}},
		"a feature misspelt":      {subscriptions.OverrideChange{Set: limits{"features.automation": {}}, Reason: "x"}, []string{"features.automation: no plan", "there are automations, record_groups"}},
		"a feature of no form":    {subscriptions.OverrideChange{Set: limits{"features.a b": {}}, Reason: "x"}, []string{"features.a b: the feature's name must be"}},
		"a feature without name":  {subscriptions.OverrideChange{Set: limits{"features.": {}}, Reason: "x"}, []string{"features.: the feature's name must be"}},
		"storage as a feature":    {subscriptions.OverrideChange{Set: limits{"features.storage_bytes": {}}, Reason: "x"}, []string{"max_storage_mb instead"}},
		"more than can be exact":  {subscriptions.OverrideChange{Set: limits{"max_storage_mb": schemas.LimitOf(1 << 40)}, Reason: "x"}, []string{"max_storage_mb: is 1099511627776, more than the largest allowed, 8589934591"}},
		"an expiry that passed":   {subscriptions.OverrideChange{Set: one, Reason: "x", Until: &past}, []string{"until ", "must be later than now"}},
		"clearing what is not":    {subscriptions.OverrideChange{Clear: []string{"max_storage_mb"}}, []string{"max_storage_mb: is not overridden; overridden are max_executions"}},
		"set and cleared at once": {subscriptions.OverrideChange{Set: one, Clear: []string{"max_executions"}, Reason: "x"}, []string{"max_executions: is set and cleared at once"}},
		"several faults":          {subscriptions.OverrideChange{Set: limits{"a": {}, "b": {}}}, []string{"reason:", "a: is no limit", "b: is no limit"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.change.WorkspaceID = "acme"
			_, err := s.ChangeOverrides(t.Context(), test.change)
			if !errors.Is(err, subscriptions.ErrInvalidOverride) {
				t.Fatalf("error is %v", err)
			}
			for _, part := range test.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
	t.Run("unknown workspaces", func(t *testing.T) {
		t.Parallel()
		_, err := s.ChangeOverrides(t.Context(), subscriptions.OverrideChange{WorkspaceID: "nobody", Clear: []string{"max_executions"}})
		if !errors.Is(err, subscriptions.ErrUnknownWorkspace) {
			t.Errorf("clearing: %v", err)
		}
		strict := subscriptions.NewStore(pool, subscriptions.StoreOptions{DenyUnknown: true})
		_, err = strict.ChangeOverrides(t.Context(), subscriptions.OverrideChange{WorkspaceID: "nobody", Set: one, Reason: "x"})
		if !errors.Is(err, subscriptions.ErrNotEntitled) {
			t.Errorf("setting where unknown ones are denied: %v", err)
		}
		if n := count(t, pool, `SELECT count(*) FROM workspaces WHERE id = 'nobody'`); n != 0 {
			t.Error("a refused override made a workspace, which would be entitled to the default plan")
		}
	})
}

func TestTheDatabaseRefusesAnOverrideThatMeansNothing(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	override(t, s, subscriptions.OverrideChange{Set: limits{"max_executions": schemas.LimitOf(5)}})
	for name, set := range map[string]string{
		"a field of no name": `field = 'max_excutions'`, "no reason": `reason = ''`, "less than nothing": `value = -1`, "never, spelt as an instant": `expires_at = 'infinity'`,
	} {
		if _, err := pool.Exec(t.Context(), `UPDATE plan_overrides SET `+set); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestASnapshotThatLacksThePlansValueIsRefused(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	assign(t, s, subscriptions.Assignment{})
	override(t, s, subscriptions.OverrideChange{Set: limits{"max_executions": schemas.LimitOf(5)}})
	for _, broken := range []string{
		`jsonb_set(snapshot, '{overrides,0,plan}', 'null')`,
		`jsonb_set(snapshot, '{overrides,0,field}', '"max_excutions"')`,
	} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var was []byte
		if err := tx.QueryRow(t.Context(), `SELECT snapshot FROM subscriptions`).Scan(&was); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `UPDATE subscriptions SET snapshot = `+broken); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if info, err := s.PlanInfo(t.Context(), "acme", now(t, pool)); err == nil {
			t.Errorf("with %s the plan is %+v, want an error", broken, info.Snapshot)
		}
		if _, err := pool.Exec(t.Context(), `UPDATE subscriptions SET snapshot = $1`, was); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnOverrideIsReplacedWhole(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	row := assign(t, s, subscriptions.Assignment{})
	until := now(t, pool).Add(time.Hour).Truncate(time.Microsecond)
	override(t, s, subscriptions.OverrideChange{Set: limits{"max_executions": schemas.LimitOf(5)}, Until: &until, Reason: "first"})
	live := override(t, s, subscriptions.OverrideChange{Set: limits{"max_executions": schemas.LimitOf(5)}, Reason: "second"})
	want := []subscriptions.Override{{Field: "max_executions", Value: schemas.LimitOf(5), Reason: "second", SetBy: "override"}}
	if diff := cmp.Diff(want, live, compareLimits, cmpopts.IgnoreFields(subscriptions.Override{}, "SetAt")); diff != "" {
		t.Errorf("overrides (-want +got):\n%s", diff)
	}
	if info := planInfo(t, s, until.Add(time.Hour)); info.Snapshot.Limits.MaxExecutions != schemas.LimitOf(5) || !info.ValidUntil.IsZero() {
		t.Errorf("the first expiry is still in force: %+v", info)
	}
	lines := changeLines(history(t, s, "acme")[0].Changes)
	last := "overrides.max_executions: 5 until " + until.Format(time.RFC3339) + " -> 5 (override: second)"
	if history(t, s, "acme")[0].ID != row.ID || len(lines) != 3 || lines[2] != last {
		t.Errorf("audit trail %q does not end with %q", lines, last)
	}
}
