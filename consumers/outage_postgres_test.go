package consumers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// cacheTTL is how long a plan is exact in this test.
const cacheTTL = 4 * time.Second

func TestAnOutageOfPostgresStopsOnlyWorkspacesThatAreNotKnown(t *testing.T) {
	t.Parallel()
	server := schematest.PostgresServer(t)
	pool, err := pgxpool.New(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store := subscriptions.NewStore(pool, subscriptions.StoreOptions{})
	catalog, err := subscriptions.ParseCatalog("catalog.yaml", []byte(catalogOfTests))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.ApplyCatalog(t.Context(), catalog); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	plans := subscriptions.NewCache(store.PlanInfo, subscriptions.CacheOptions{TTL: cacheTTL})
	enforcer := enforcement.New(enforcement.Options{
		Redis: schematest.Redis(t), Plans: plans, Usage: ledger.New(pool),
	})
	w.start(enforcer, func(o *consumers.Options) { o.UnavailableBudget = time.Second })

	decided := 0
	decide := func(ws, execution string) schemas.DecisionMade {
		t.Helper()
		w.request(ws, execution)
		decided++
		return w.decisions(decided)[decided-1]
	}
	before := decide("known", "before")
	if !before.Allowed || !before.Exact {
		t.Fatalf("with Postgres there: %+v", before)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	if d := decide("unknown", "during"); d.Code != enforcement.CodeUnavailable {
		t.Errorf("an unknown workspace is decided with %d, want 9008", d.Code)
	}
	if waited := time.Since(killed); waited < time.Second {
		t.Errorf("the unknown workspace was denied after %s, want that it is put off first", waited)
	}
	stale := 0
	for i := 0; stale < 5 && time.Since(before.PlanAsOf) < 2*cacheTTL-cacheTTL/4; i++ {
		d := decide("known", fmt.Sprintf("during-%d", i))
		if !d.Allowed {
			t.Fatalf("a known workspace is denied with %d", d.Code)
		}
		if !d.PlanAsOf.Equal(before.PlanAsOf) {
			t.Fatalf("the plan of %s was read while Postgres was away, at %s", before.PlanAsOf, d.PlanAsOf)
		}
		if !d.Exact {
			stale++
		}
	}
	if stale < 5 {
		t.Errorf("%d decisions on a stale plan", stale)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	for i := 0; ; i++ {
		d := decide("known", fmt.Sprintf("after-%d", i))
		if d.Exact && d.Allowed {
			break
		}
		if time.Since(back) > patience {
			t.Fatalf("not exact after Postgres was back: %+v", d)
		}
	}
	t.Logf("exact %s after Postgres was back", time.Since(back))
	if d := decide("unknown", "after"); !d.Allowed {
		t.Errorf("the unknown workspace is denied with %d after Postgres was back", d.Code)
	}
}
