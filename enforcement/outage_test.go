package enforcement_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// shortTTL is how long a plan is exact in this test; it is read again then.
const shortTTL = time.Second

func TestDecisionsTellThatPostgresIsAway(t *testing.T) {
	t.Parallel()
	server := schematest.PostgresServer(t)
	pool, err := pgxpool.New(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store := subscriptions.NewStore(pool, subscriptions.StoreOptions{})
	free := subscriptions.Plan{Key: "free", Default: true, Limits: unlimited(nil), Features: map[string]schemas.Limit{}}
	if _, err := store.ApplyCatalog(t.Context(), subscriptions.Catalog{Plans: []subscriptions.Plan{free}}); err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, unlimited(nil), func(o *enforcement.Options) {
		o.Plans = subscriptions.NewCache(store.PlanInfo, subscriptions.CacheOptions{TTL: shortTTL})
	})
	number := 0
	next := func() enforcement.Result {
		number++
		return h.Admit(t.Context(), []enforcement.Request{ask(fmt.Sprintf("e%d", number), "1")})[0]
	}
	until := func(what string, is func(r enforcement.Result) bool) enforcement.Result {
		t.Helper()
		again := time.NewTicker(10 * time.Millisecond)
		defer again.Stop()
		deadline := time.After(20 * time.Second)
		for {
			r := next()
			if is(r) {
				return r
			}
			select {
			case <-again.C:
			case <-deadline:
				t.Fatalf("not in time: %s; the last answer is %+v", what, r)
			}
		}
	}
	first := next()
	if first.Err != nil || !first.Decision.Exact {
		t.Fatalf("with Postgres there: %+v", first)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	readAt := first.Decision.PlanAsOf
	stale := until("a decision on a stale plan", func(r enforcement.Result) bool {
		if r.Err == nil && r.Decision.Exact {
			if !r.Decision.PlanAsOf.Before(readAt) {
				readAt = r.Decision.PlanAsOf // it was read once more before the kill
			}
			return false
		}
		return true
	})
	if stale.Err != nil || !stale.Decision.Allowed || !stale.Decision.PlanAsOf.Equal(readAt) {
		t.Errorf("on a stale plan: %+v, want an allow as of %s", stale, readAt)
	}
	over := until("no decision", func(r enforcement.Result) bool { return r.Err != nil })
	if over.Decision.Allowed {
		t.Errorf("admitted though no plan may be used any more: %+v", over)
	}
	if served := time.Since(readAt); served < 2*shortTTL-shortTTL/10 {
		t.Errorf("the plan was used for %s, want two TTLs of %s", served, shortTTL)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	exact := until("an exact decision", func(r enforcement.Result) bool { return r.Err == nil })
	if !exact.Decision.Exact || !exact.Decision.PlanAsOf.After(readAt) {
		t.Errorf("with Postgres back: %+v", exact)
	}
	t.Logf("exact %s after Postgres was back", time.Since(back))
	if took := time.Since(back); took > 5*time.Second {
		t.Errorf("exact only after %s", took)
	}
}
