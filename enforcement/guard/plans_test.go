package guard_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// catalog is a catalog with one plan.
const catalog = `
plans:
  free:
    default: true
    rank: 0
    limits:
      max_executions: unlimited
      max_concurrent_executions: unlimited
      max_tasks_per_execution: unlimited
      max_execution_duration_minutes: unlimited
      max_execution_payload_size_mb: unlimited
      max_storage_mb: unlimited
      max_executions_per_minute: unlimited
    features: {projects: 2}
`

// From the catalog to the row: the plan in Postgres, the cache that is told of a change,
// the lock and the application's table.
func TestAGuardOnARealPlan(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t, database(t), 2)
	store := subscriptions.NewStore(schematest.Postgres(t), subscriptions.StoreOptions{})
	parsed, err := subscriptions.ParseCatalog("catalog.yaml", []byte(catalog))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.ApplyCatalog(t.Context(), parsed); err != nil {
		t.Fatal(err)
	}
	plans := subscriptions.NewCache(store.PlanInfo, subscriptions.CacheOptions{})
	provider, err := guard.NewPlanProvider(guard.PlanOptions{Plans: plans, Catalog: pro()})
	if err != nil {
		t.Fatal(err)
	}
	client := newClient[pgx.Tx](t, provider, guard.NewAdvisoryLock(pool, guard.PostgresOptions{}))
	asks := func(allowed int64, source guard.Source) {
		t.Helper()
		for stored(t, "org") < allowed {
			_, details, err := guard.Guard(t.Context(), client, request("org"), projects("org", nil))
			if err != nil || details.Source != source || details.PlanKey != "free" || details.Stale {
				t.Fatalf("below the limit: %+v, %v; want it allowed by the %s", details, err, source)
			}
		}
		if _, _, err := guard.Guard(t.Context(), client, request("org"), projects("org", nil)); !is[*guard.EntitlementLimitExceeded](err) {
			t.Errorf("beside %d: %v, want *EntitlementLimitExceeded", allowed, err)
		}
	}
	asks(2, guard.SourceDefault)
	if _, err := store.ChangeOverrides(t.Context(), subscriptions.OverrideChange{
		WorkspaceID: "org", Set: map[string]schemas.Limit{"features.projects": schemas.LimitOf(4)}, Reason: "a test",
	}); err != nil {
		t.Fatal(err)
	}
	plans.Invalidate("org", 0)
	asks(4, guard.SourceOverride)
}
