package subscriptions_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// lifecyclePatience bounds what a test waits for a worker to do.
const lifecyclePatience = 60 * time.Second

// lifecycle runs a worker as another process would, with a pool of its own, until it
// is stopped or the test ends.
func lifecycle(t testing.TB, policy subscriptions.Policy, log *slog.Logger) (stop func()) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), schematest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	s := subscriptions.NewStore(pool, subscriptions.StoreOptions{Policy: policy})
	l := subscriptions.NewLifecycle(s, subscriptions.LifecycleOptions{Glance: 20 * time.Millisecond, Log: log})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("the worker ended with %v", err)
			}
			pool.Close()
		})
	}
	t.Cleanup(stop)
	return stop
}

// eventually looks at something outside until it is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(lifecyclePatience)
	for !so() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", lifecyclePatience, what)
		}
	}
}

// nothingDue waits until the workers have done whatever was due.
func nothingDue(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	eventually(t, "nothing is due", func() bool { return dueRows(pool) == 0 })
}

// dueRows is -1 while Postgres is away.
func dueRows(pool *pgxpool.Pool) int {
	n := -1
	_ = pool.QueryRow(context.Background(), `SELECT count(*) FROM subscriptions
		WHERE closed_at IS NULL AND (due_at <= now() OR "interval" IS NOT NULL AND period_end <= now())`).Scan(&n)
	return n
}

// manyDue writes workspaces ws00001… with an hourly subscription to pro each, whose
// open period ended half an hour ago. It goes round Assign, for speed.
func manyDue(t testing.TB, s *subscriptions.Store, pool *pgxpool.Pool, n int) {
	t.Helper()
	start := now(t, pool).Add(-90 * time.Minute)
	assign(t, s, subscriptions.Assignment{WorkspaceID: "model", Interval: "1h", Start: &start, Now: start.Add(time.Minute)})
	for _, statement := range []string{
		`INSERT INTO workspaces (id, revision) SELECT 'ws' || to_char(i, 'FM00000'), 1 FROM generate_series(1, $1) i`,
		`INSERT INTO subscriptions (id, workspace_id, source, source_id, plan_key, plan_revision, snapshot, kind,
				period_start, period_end, billing_start, billing_end, usage_epoch, "interval", anchor, due_at)
			SELECT made.id, ws, source, ws, plan_key, plan_revision, snapshot, kind,
				period_start, period_end, billing_start, billing_end, made.id::text, "interval", anchor, due_at
			FROM subscriptions model, LATERAL (SELECT gen_random_uuid(), 'ws' || to_char(i, 'FM00000') FROM generate_series(1, $1) i) AS made (id, ws)`,
		`UPDATE workspaces w SET active_subscription_id = s.id FROM subscriptions s WHERE s.workspace_id = w.id AND $1 > 0`,
	} {
		if _, err := pool.Exec(t.Context(), statement, n); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, pool, `ANALYZE`)
}

// wantRenewedOnce checks that each of the workspaces has had one renewal, which was
// told once and invalidated once, and has a fresh quota.
func wantRenewedOnce(t testing.TB, pool *pgxpool.Pool, workspaces int64) {
	t.Helper()
	for what, query := range map[string]string{
		"workspaces on a new period": `SELECT count(*) FROM workspaces w JOIN subscriptions s ON s.id = w.active_subscription_id
			WHERE s.closed_at IS NULL AND s.kind = 'cycle' AND s.period_end > now() AND s.usage_epoch = s.id::text AND w.revision = 2`,
		"open periods":          `SELECT count(*) FROM subscriptions WHERE closed_at IS NULL`,
		"closed periods":        `SELECT count(*) FROM subscriptions WHERE closed_at = period_end`,
		"quotas in new periods": `SELECT count(DISTINCT usage_epoch) FROM subscriptions WHERE closed_at IS NULL`,
		"renewals told": `SELECT count(DISTINCT o.body->>'subscription_id') FROM outbox o JOIN subscriptions s ON s.id::text = o.body->>'subscription_id'
			WHERE subject_kind = 'subscription.renewed' AND s.closed_at IS NULL`,
		"news of renewals":      `SELECT count(*) FROM outbox WHERE subject_kind = 'subscription.renewed'`,
		"invalidations":         `SELECT count(*) FROM outbox WHERE subject_kind = 'plan.invalidated'`,
		"workspaces told apart": `SELECT count(DISTINCT workspace_id) FROM outbox WHERE subject_kind = 'plan.invalidated' AND body->>'plan_revision' = '2'`,
	} {
		if n := count(t, pool, query); n != workspaces {
			t.Errorf("%s: %d, want %d", what, n, workspaces)
		}
	}
}

// elapse lets time pass, by moving all of the subscriptions into the past.
func elapse(t testing.TB, pool *pgxpool.Pool, d time.Duration) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `UPDATE subscriptions SET
		period_start = period_start - $1::interval, period_end = period_end - $1, billing_start = billing_start - $1,
		billing_end = billing_end - $1, anchor = anchor - $1, cancel_at = cancel_at - $1, closed_at = closed_at - $1,
		unpaid_since = unpaid_since - $1, overdue_since = overdue_since - $1, due_at = due_at - $1`, d)
	if err != nil {
		t.Fatal(err)
	}
}

// caughtUp runs a test twice: with what time has done carried out by a lookup alone,
// and by a worker alone.
func caughtUp(t *testing.T, test func(t *testing.T, catchUp func(*subscriptions.Store, *pgxpool.Pool))) {
	t.Helper()
	t.Run("by a lookup", func(t *testing.T) {
		t.Parallel()
		test(t, func(s *subscriptions.Store, pool *pgxpool.Pool) { planInfo(t, s, now(t, pool)) })
	})
	t.Run("by the worker", func(t *testing.T) {
		t.Parallel()
		test(t, func(_ *subscriptions.Store, pool *pgxpool.Pool) {
			stop := lifecycle(t, subscriptions.Policy{}, schematest.Logger(t))
			nothingDue(t, pool)
			stop()
		})
	})
}
