package usage_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// TestMain runs the tests, or is one of the processes that a test started.
func TestMain(m *testing.M) {
	if job := os.Getenv(jobVariable); job != "" {
		os.Exit(worker(job, os.Stdout))
	}
	schematest.Main(m)
}

// kinds are the features of these tests that are no stocks.
var kinds = map[string]subscriptions.FeatureKind{"emails": subscriptions.FeatureFlow, "sso": subscriptions.FeatureBoolean}

// kinded is a plan cache whose snapshots have the kinds above.
type kinded struct{ *subscriptions.Cache }

func (k kinded) Lookup(ctx context.Context, workspace string, at time.Time) (subscriptions.PlanInfo, error) {
	info, err := k.Cache.Lookup(ctx, workspace, at)
	info.Snapshot.Kinds = kinds
	return info, err
}

// catalog is every feature of these tests.
type catalog struct{}

func (catalog) Features(context.Context) (map[string]subscriptions.FeatureKind, error) {
	all := map[string]subscriptions.FeatureKind{"projects": subscriptions.FeatureStock, "seats": subscriptions.FeatureStock}
	for feature, kind := range kinds {
		all[feature] = kind
	}
	return all, nil
}

// house is Counters with all that they stand on.
type house struct {
	*usage.Counters
	pool *pgxpool.Pool
	// side is for who looks while all connections of the pool may be waiting.
	side  *pgxpool.Pool
	store *subscriptions.Store
	plans kinded
}

// open has the plans that are given, the first of which is the default.
func open(t testing.TB, plans ...subscriptions.Plan) *house {
	t.Helper()
	pool := schematest.Postgres(t)
	return openOn(t, pool, schematest.Pool(t, schematest.PostgresURL(t), 2), plans...)
}

// openOn reads plans from a pool of their own: the other one is held by the transactions
// that need them.
func openOn(t testing.TB, pool, plansFrom *pgxpool.Pool, plans ...subscriptions.Plan) *house {
	t.Helper()
	h := &house{pool: pool, side: plansFrom, store: subscriptions.NewStore(plansFrom, subscriptions.StoreOptions{})}
	h.plans = kinded{subscriptions.NewCache(h.store.PlanInfo, subscriptions.CacheOptions{})}
	h.Counters = usage.New(usage.Options{Pool: pool, Plans: h.plans, Catalog: catalog{}, Log: schematest.Logger(t)})
	if len(plans) > 0 {
		plans[0].Default = true
		h.apply(t, plans...)
	}
	return h
}

func (h *house) apply(t testing.TB, plans ...subscriptions.Plan) {
	t.Helper()
	for i := range plans {
		plans[i].Rank = int32(i)
	}
	if _, err := h.store.ApplyCatalog(t.Context(), subscriptions.Catalog{Plans: plans}); err != nil {
		t.Fatal(err)
	}
}

func (h *house) assign(t testing.TB, workspace, plan string) subscriptions.Subscription {
	t.Helper()
	row, err := h.store.Assign(t.Context(), subscriptions.Assignment{WorkspaceID: workspace, PlanKey: plan})
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// features maps names to limits; below 0 is unlimited.
type features map[string]int64

func plan(key string, f features) subscriptions.Plan {
	p := subscriptions.Plan{Key: key, Features: map[string]schemas.Limit{}}
	for _, name := range schemas.LimitNames {
		*p.Limits.Named(name) = schemas.Unlimited
	}
	for name, n := range f {
		limit := schemas.LimitOf(n)
		if n < 0 {
			limit = schemas.Unlimited
		}
		if name == schemas.FeatureStorage {
			p.Limits.MaxStorageMB = limit
			continue
		}
		p.Features[name] = limit
	}
	return p
}

// in runs do in a transaction and commits what it did, whatever it returns.
func (h *house) in(t testing.TB, do func(tx pgx.Tx) error) error {
	t.Helper()
	tx, err := h.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	result := do(tx)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatalf("commit after %v: %v", result, err)
	}
	return result
}

func (h *house) consume(t testing.TB, c usage.Change) (balance usage.Balance, err error) {
	t.Helper()
	err = h.in(t, func(tx pgx.Tx) error {
		balance, err = h.Consume(t.Context(), tx, c)
		return err
	})
	return balance, err
}

func (h *house) release(t testing.TB, c usage.Change) (balance usage.Balance) {
	t.Helper()
	err := h.in(t, func(tx pgx.Tx) error {
		var err error
		balance, err = h.Release(t.Context(), tx, c)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return balance
}

// must consumes where there is room, and returns what is used then.
func (h *house) must(t testing.TB, c usage.Change) int64 {
	t.Helper()
	balance, err := h.consume(t, c)
	if err != nil {
		t.Fatal(err)
	}
	return balance.Used
}

// used is the sum of the counters of a feature, in all epochs.
func (h *house) used(t testing.TB, workspace, feature string) int64 {
	t.Helper()
	var n int64
	err := h.pool.QueryRow(t.Context(), `select coalesce(sum(count), 0)::bigint from usage_counters where workspace_id = $1 and feature_key = $2`,
		workspace, feature).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (h *house) wantUsed(t testing.TB, feature string, want int64) {
	t.Helper()
	if n := h.used(t, "w", feature); n != want {
		t.Errorf("%d of %s are used, want %d", n, feature, want)
	}
}

func (h *house) count(t testing.TB, query string, args ...any) int64 {
	t.Helper()
	var n int64
	if err := h.pool.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func of(feature string, quantity int64) usage.Change {
	return usage.Change{WorkspaceID: "w", Feature: feature, Quantity: quantity}
}

// fixed is one reading of every workspace's plan, which the database never knows better.
type fixed struct {
	mu      sync.Mutex
	info    subscriptions.PlanInfo
	err     error
	dropped []int64
}

func (f *fixed) Lookup(_ context.Context, workspace string, _ time.Time) (subscriptions.PlanInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info := f.info
	info.WorkspaceID = workspace
	return info, f.err
}

func (f *fixed) Invalidate(_ string, revision int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropped = append(f.dropped, revision)
}

// fixedOn are Counters on a plan whose limits no catalog would allow.
func fixedOn(t testing.TB, pool *pgxpool.Pool, f features) (*house, *fixed) {
	t.Helper()
	p := plan("odd", f)
	now := time.Now().UTC()
	plans := &fixed{info: subscriptions.PlanInfo{
		SubscriptionID: "0197c3f0-0000-7000-8000-000000000001", UsageEpoch: "epoch-1",
		Period:   subscriptions.Period{Start: now.Add(-time.Hour), End: now.Add(24 * time.Hour)},
		Snapshot: subscriptions.Snapshot{PlanKey: p.Key, PlanRevision: 1, Limits: p.Limits, Features: p.Features, Kinds: kinds},
	}}
	return &house{pool: pool, Counters: usage.New(usage.Options{Pool: pool, Plans: plans})}, plans
}
