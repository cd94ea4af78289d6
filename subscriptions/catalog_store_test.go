package subscriptions_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// newStore is a store on the test's own database.
func newStore(t testing.TB) (*subscriptions.Store, *pgxpool.Pool) {
	t.Helper()
	pool := schematest.Postgres(t)
	return subscriptions.NewStore(pool, subscriptions.StoreOptions{}), pool
}

// apply puts the two plans in force, each change made to the file first.
func apply(t testing.TB, s *subscriptions.Store, changes ...string) subscriptions.Applied {
	t.Helper()
	applied, err := s.ApplyCatalog(t.Context(), parse(t, edited(t, changes...)))
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

// edited is the file of two plans with each pair of texts exchanged once.
func edited(t testing.TB, changes ...string) string {
	t.Helper()
	body := twoPlans
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(body, changes[i]) {
			t.Fatalf("%q is not in the file", changes[i])
		}
		body = strings.Replace(body, changes[i], changes[i+1], 1)
	}
	return body
}

func count(t testing.TB, pool *pgxpool.Pool, query string, args ...any) int64 {
	t.Helper()
	var n int64
	if err := pool.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// withoutPro is the file with its first plan only.
func withoutPro() string { return twoPlans[:strings.Index(twoPlans, "  pro:")] }

func TestApplyCatalogMakesOneRevisionForWhatChanged(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	first := apply(t, s)
	if len(first.Changes) != 2 || first.Revision != 1 {
		t.Fatalf("first apply: %+v", first)
	}
	for _, change := range first.Changes {
		if change.Kind != subscriptions.PlanCreated || change.From != 0 || change.To != 1 || len(change.Fields) < 10 {
			t.Errorf("first apply: %+v", change)
		}
	}

	again := apply(t, s)
	want := subscriptions.Applied{Revision: 1, Changes: []subscriptions.PlanChange{
		{Key: "free", Kind: subscriptions.PlanUnchanged, From: 1, Fields: []subscriptions.FieldChange{}},
		{Key: "pro", Kind: subscriptions.PlanUnchanged, From: 1, Fields: []subscriptions.FieldChange{}},
	}}
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("unchanged apply (-want +got):\n%s", diff)
	}
	if n := count(t, pool, `SELECT count(*) FROM plan_revisions`); n != 2 {
		t.Errorf("%d revisions after an unchanged apply, want 2", n)
	}

	changed := apply(t, s, "automations: 0", "automations: 7\n      seats: 2", "max_executions: -1", "max_executions: 5000")
	want = subscriptions.Applied{Revision: 2, Changes: []subscriptions.PlanChange{
		{Key: "free", Kind: subscriptions.PlanUnchanged, From: 1, Fields: []subscriptions.FieldChange{}},
		{Key: "pro", Kind: subscriptions.PlanChanged, From: 1, To: 2, Fields: []subscriptions.FieldChange{
			{Field: "limits.max_executions", From: "unlimited", To: "5000"},
			{Field: "features.automations", From: "0", To: "7"},
			{Field: "features.seats", To: "2"},
		}},
	}}
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Errorf("changed apply (-want +got):\n%s", diff)
	}
}

func TestApplyCatalogKeepsWhatThePlanWas(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	apply(t, s, "rank: 10", "rank: 11", "price_yearly", "price_annual")

	revisions, err := s.Plan(t.Context(), "pro")
	if err != nil {
		t.Fatal(err)
	}
	catalog := parse(t, edited(t, "rank: 10", "rank: 11", "price_yearly", "price_annual"))
	catalog.Plans[1].StripePrices = []string{"price_annual", "price_monthly"}
	want := []subscriptions.PlanRevision{
		{Plan: catalog.Plans[1], Revision: 2},
		{Plan: parse(t, twoPlans).Plans[1], Revision: 1},
	}
	ignoreTime := cmpopts.IgnoreFields(subscriptions.PlanRevision{}, "CreatedAt")
	if diff := cmp.Diff(want, revisions, compareLimits, ignoreTime); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	if _, err := pool.Exec(t.Context(), `UPDATE plan_revisions SET rank = 99`); err == nil {
		t.Error("a revision can be rewritten")
	}
}

func TestApplyCatalogRemovesAndBringsBack(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	apply(t, s)
	if _, err := s.Assign(t.Context(), subscriptions.Assignment{WorkspaceID: "acme", PlanKey: "pro"}); err != nil {
		t.Fatal(err)
	}
	removed, err := s.ApplyCatalog(t.Context(), parse(t, withoutPro()))
	if err != nil {
		t.Fatal(err)
	}
	want := subscriptions.PlanChange{Key: "pro", Kind: subscriptions.PlanRemoved, From: 1, To: 2, Fields: []subscriptions.FieldChange{}, Running: 1}
	if diff := cmp.Diff(want, removed.Changes[1]); diff != "" {
		t.Errorf("removal (-want +got):\n%s", diff)
	}
	plans, err := s.Plans(t.Context())
	if err != nil || len(plans) != 1 || plans[0].Key != "free" {
		t.Errorf("plans in force are %v, %v", plans, err)
	}
	if _, err := s.Assign(t.Context(), subscriptions.Assignment{WorkspaceID: "other", PlanKey: "pro"}); !errors.Is(err, subscriptions.ErrUnknownPlan) {
		t.Errorf("a removed plan can be assigned: %v", err)
	}
	if history, err := s.Plan(t.Context(), "pro"); err != nil || !history[0].Removed || history[0].Limits != history[1].Limits {
		t.Errorf("a removed plan's history is %v, %v", history, err)
	}

	if unchanged, err := s.ApplyCatalog(t.Context(), parse(t, withoutPro())); err != nil || len(unchanged.Changes) != 1 || unchanged.Revision != 2 {
		t.Errorf("a second removal is %+v, %v", unchanged, err)
	}
	back := apply(t, s)
	if back.Changes[1].Kind != subscriptions.PlanCreated || back.Changes[1].From != 2 || back.Changes[1].To != 3 {
		t.Errorf("a plan that came back is %+v", back.Changes[1])
	}
}

func TestApplyCatalogMovesTheDefault(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	apply(t, s)
	moved := apply(t, s, "    default: true\n", "", "    rank: 10", "    rank: 10\n    default: true")
	for _, change := range moved.Changes {
		if change.Kind != subscriptions.PlanChanged || len(change.Fields) != 1 || change.Fields[0].Field != "default" {
			t.Errorf("moving the default: %+v", change)
		}
	}
	info, err := s.PlanInfo(t.Context(), "acme", november.Start)
	if err != nil || info.Snapshot.PlanKey != "pro" || info.Snapshot.PlanRevision != 2 {
		t.Errorf("default plan is %s, revision %d, %v", info.Snapshot.PlanKey, info.Snapshot.PlanRevision, err)
	}
}

func TestApplyCatalogRefusesACatalogThatIsNone(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	good := parse(t, twoPlans).Plans
	bad := good[1]
	bad.Key, bad.Rank, bad.Features = "p.ro", -1, map[string]schemas.Limit{"a b": schemas.Unlimited}
	_, err := s.ApplyCatalog(t.Context(), subscriptions.Catalog{Plans: []subscriptions.Plan{good[1], good[1], bad}})
	var faults *subscriptions.CatalogError
	if !errors.As(err, &faults) || len(faults.Faults) != 7 {
		t.Errorf("error is %v, want seven faults", err)
	}
	if _, err := s.DiffCatalog(t.Context(), subscriptions.Catalog{}, nil); !errors.As(err, &faults) {
		t.Errorf("diff of an empty catalog is %v", err)
	}
	if n := count(t, pool, `SELECT count(*) FROM plan_revisions`); n != 0 {
		t.Errorf("%d revisions were written", n)
	}
}

func TestDiffCatalogWritesNothing(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	diff, err := s.DiffCatalog(t.Context(), parse(t, edited(t, "rank: 0", "rank: 1", "{record_groups: 3, automations: 5}", "{automations: unlimited}")), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := subscriptions.Diff{Changes: []subscriptions.PlanChange{
		{Key: "free", Kind: subscriptions.PlanChanged, From: 1, Fields: []subscriptions.FieldChange{
			{Field: "rank", From: "0", To: "1"},
			{Field: "features.automations", From: "5", To: "unlimited"},
			{Field: "features.record_groups", From: "3"},
		}},
		{Key: "pro", Kind: subscriptions.PlanUnchanged, From: 1, Fields: []subscriptions.FieldChange{}},
	}}
	if d := cmp.Diff(want, diff); d != "" {
		t.Errorf("diff (-want +got):\n%s", d)
	}
	if diff.Empty() {
		t.Error("a diff with changes says it is empty")
	}
	if n := count(t, pool, `SELECT count(*) FROM plan_revisions`); n != 2 {
		t.Errorf("%d revisions after a diff, want 2", n)
	}
	if same, err := s.DiffCatalog(t.Context(), parse(t, twoPlans), nil); err != nil || !same.Empty() {
		t.Errorf("diff with itself is %+v, %v", same, err)
	}
}

// TestApplyCatalogInParallel has eight operators with different files: the
// revisions are distinct, and the last one is in force as a whole.
func TestApplyCatalogInParallel(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	var operators sync.WaitGroup
	for i := range 8 {
		catalog := parse(t, edited(t, "rank: 10", "rank: "+string(rune('1'+i)), "max_executions: 100", "max_executions: "+string(rune('1'+i))))
		operators.Go(func() {
			if _, err := s.ApplyCatalog(t.Context(), catalog); err != nil {
				t.Error(err)
			}
		})
	}
	operators.Wait()
	if n := count(t, pool, `SELECT count(DISTINCT revision) FROM plan_revisions`); n != 8 {
		t.Errorf("%d revisions, want 8", n)
	}
	plans, err := s.Plans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := plans[0].Limits.MaxExecutions.Value(); len(plans) != 2 || int64(plans[1].Rank) != n || plans[0].Revision != plans[1].Revision {
		t.Errorf("the plans in force are of two files: %+v", plans)
	}
}

func TestPlanUnknown(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	if plans, err := s.Plans(t.Context()); err != nil || len(plans) != 0 {
		t.Errorf("plans of an empty database are %v, %v", plans, err)
	}
	if _, err := s.Plan(t.Context(), "pro"); !errors.Is(err, subscriptions.ErrUnknownPlan) || !strings.Contains(err.Error(), "no catalog is applied") {
		t.Errorf("a plan of an empty database: %v", err)
	}
	apply(t, s)
	if _, err := s.Plan(t.Context(), "gold"); !errors.Is(err, subscriptions.ErrUnknownPlan) || !strings.Contains(err.Error(), "the catalog has free, pro") {
		t.Errorf("a plan that is not in the catalog: %v", err)
	}
}

func TestTheCatalogHasARevisionAndADefaultPlanOnceItIsApplied(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	if n, err := s.CatalogRevision(t.Context()); n != 0 || err != nil {
		t.Errorf("before the first apply: revision %d (%v), want 0", n, err)
	}
	if err := s.RequireDefaultPlan(t.Context()); !errors.Is(err, subscriptions.ErrNoDefaultPlan) {
		t.Errorf("before the first apply: %v, want that there is no default plan", err)
	}
	for _, edit := range [][]string{nil, {"max_concurrent_executions: 20", "max_concurrent_executions: 30"}} {
		applied := apply(t, s, edit...)
		if n, err := s.CatalogRevision(t.Context()); n != applied.Revision || err != nil {
			t.Errorf("revision %d (%v), want %d", n, err, applied.Revision)
		}
		if err := s.RequireDefaultPlan(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
