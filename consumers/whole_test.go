package consumers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

const catalogOfTests = `
plans:
  free:
    default: true
    rank: 0
    limits:
      max_executions: unlimited
      max_concurrent_executions: unlimited
      max_tasks_per_execution: 50
      max_execution_duration_minutes: 10
      max_execution_payload_size_mb: 5
      max_storage_mb: 100
      max_executions_per_minute: unlimited
  pro:
    rank: 10
    limits:
      max_executions: 40
      max_concurrent_executions: 5
      max_tasks_per_execution: 50
      max_execution_duration_minutes: 10
      max_execution_payload_size_mb: 5
      max_storage_mb: 100
      max_executions_per_minute: unlimited
  quota:
    rank: 20
    limits:
      max_executions: 40
      max_concurrent_executions: unlimited
      max_tasks_per_execution: 50
      max_execution_duration_minutes: 10
      max_execution_payload_size_mb: 5
      max_storage_mb: 100
      max_executions_per_minute: unlimited
  ample:
    rank: 30
    limits:
      max_executions: 1000
      max_concurrent_executions: unlimited
      max_tasks_per_execution: 50
      max_execution_duration_minutes: 10
      max_execution_payload_size_mb: 5
      max_storage_mb: 100
      max_executions_per_minute: unlimited
`

// whole is the whole event path on real services.
type whole struct {
	*books
	enforcer *enforcement.Enforcer
	plans    *subscriptions.Cache
	// subscriptions is what plans reads.
	subscriptions *subscriptions.Store
}

func newWhole(t *testing.T, o subscriptions.StoreOptions) *whole {
	t.Helper()
	return wholeOver(t, schematest.Redis(t), o)
}

func wholeOver(t *testing.T, client *redis.Client, o subscriptions.StoreOptions) *whole {
	t.Helper()
	b := newBooks(t)
	store := subscriptions.NewStore(b.pool, o)
	catalog, err := subscriptions.ParseCatalog("catalog.yaml", []byte(catalogOfTests))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.ApplyCatalog(t.Context(), catalog); err != nil {
		t.Fatal(err)
	}
	for ws, plan := range map[string]string{"narrow": "pro", "limited": "quota"} {
		if _, err := store.Assign(t.Context(), subscriptions.Assignment{WorkspaceID: ws, PlanKey: plan}); err != nil {
			t.Fatal(err)
		}
	}
	plans := subscriptions.NewCache(store.PlanInfo, subscriptions.CacheOptions{})
	return &whole{books: b, plans: plans, subscriptions: store, enforcer: enforcement.New(enforcement.Options{
		Redis: client, Plans: plans, Usage: b.store,
		Watermark: consumers.NewWatermark(b.js, b.topology, b.store), RebuildFence: 200 * time.Millisecond,
	})}
}

// outstanding is what Redis and the ledger each say of a workspace's period.
func (w *whole) outstanding(ws string) (enforcement.Outstanding, enforcement.Usage) {
	w.Helper()
	info, err := w.plans.Lookup(context.Background(), ws, time.Now())
	if err != nil {
		w.Fatal(err)
	}
	redis, err := w.enforcer.Outstanding(context.Background(), ws, info.UsageEpoch)
	if err != nil {
		w.Fatal(err)
	}
	folded, err := w.store.Usage(context.Background(), ws, info.UsageEpoch)
	if err != nil {
		w.Fatal(err)
	}
	return redis, folded
}

// denials is how many denials of a workspace the ledger counts.
func (w *whole) denials(ws string) (n int64) {
	w.Helper()
	records, err := w.store.Decisions(context.Background(), ledger.Query{Workspace: ws})
	if err != nil {
		w.Fatal(err)
	}
	for _, r := range records {
		if !r.Decision.Allowed {
			n += r.Count
		}
	}
	return n
}

// ends is how each execution of a workspace ended, by the ledger.
func (w *whole) ends(ws string) map[string]string {
	w.Helper()
	rows, err := w.pool.Query(context.Background(), `
		select execution_id, coalesce(outcome, 'running') || ' ' || decided from executions where workspace_id = $1`, ws)
	if err != nil {
		w.Fatal(err)
	}
	type row struct{ ID, End string }
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		w.Fatal(err)
	}
	ends := make(map[string]string)
	for _, r := range all {
		ends[r.ID] = r.End
	}
	return ends
}

// delivery is one message to be published.
type delivery struct {
	subject string
	body    []byte
}

// story is the events of many executions, each once and in order.
func (w *whole) story(executions int) (events []delivery, started int) {
	outcomes := []schemas.Outcome{schemas.OutcomeSucceeded, schemas.OutcomeFailed, schemas.OutcomeCanceled, schemas.OutcomeNotStarted}
	for i := range executions {
		ws, execution := fmt.Sprintf("free-%d", i%3), fmt.Sprintf("x%03d", i)
		outcome := outcomes[i%4]
		if outcome != schemas.OutcomeNotStarted {
			started++
		}
		tasks := int64(i % 60)
		events = append(events,
			delivery{w.topology.Requested(ws), requestBody(w.world, ws, execution, nil)},
			delivery{w.topology.Progressed(ws), body(w.world, "step-"+execution, schemas.ExecutionProgressed{WorkspaceID: ws, ExecutionID: execution, Tasks: &tasks})},
			delivery{w.topology.Completed(ws), body(w.world, "done-"+execution, schemas.ExecutionCompleted{WorkspaceID: ws, ExecutionID: execution, Outcome: outcome})})
	}
	return events, started
}

// tell publishes the events and waits until all is decided and in the ledger.
func (w *whole) tell(events []delivery) {
	w.Helper()
	for _, e := range events {
		w.publish(e.subject, e.body)
	}
	for _, kind := range []string{"requested", "progressed", "completed"} {
		w.settled(kind)
	}
	w.folded()
}

// final is the state after a story, of all its workspaces together.
type final struct {
	Used, Running, LedgerUsed, LedgerLeases int64
	Ends                                    map[string]string
}

func (w *whole) final() final {
	w.Helper()
	f := final{Ends: make(map[string]string)}
	for i := range 3 {
		ws := fmt.Sprintf("free-%d", i)
		redis, folded := w.outstanding(ws)
		f.Used += redis.Used
		f.Running += redis.Running
		f.LedgerUsed += folded.Used
		f.LedgerLeases += int64(len(folded.Leases))
		for id, end := range w.ends(ws) {
			f.Ends[id] = end
		}
	}
	return f
}

func TestAnyOrderAndRepetitionOfEventsComesToTheSameEnd(t *testing.T) {
	t.Parallel()
	const executions = 150
	inOrder := newWhole(t, subscriptions.StoreOptions{})
	inOrder.start(inOrder.enforcer, inOrder.keep)
	events, started := inOrder.story(executions)
	inOrder.tell(events)
	want := inOrder.final()
	if want.Used != int64(started) || want.LedgerUsed != int64(started) || want.Running != 0 || want.LedgerLeases != 0 || len(want.Ends) != executions {
		t.Fatalf("in order: used %d, in the ledger %d, running %d, %d leases, %d rows; want %d used and nothing running",
			want.Used, want.LedgerUsed, want.Running, want.LedgerLeases, len(want.Ends), started)
	}
	t.Run("shuffled and repeated", func(t *testing.T) {
		w := newWhole(t, subscriptions.StoreOptions{})
		r := rand.New(rand.NewPCG(2, 26))
		var many []delivery
		for _, e := range events {
			for range 1 + r.IntN(5) {
				many = append(many, e)
			}
		}
		r.Shuffle(len(many), func(i, j int) { many[i], many[j] = many[j], many[i] })
		// two processes share the work
		w.start(w.enforcer, w.keep)
		w.start(w.enforcer, w.keep)
		w.tell(many)
		if diff := cmp.Diff(want, w.final()); diff != "" {
			t.Errorf("final state (-once in order +shuffled and repeated):\n%s", diff)
		}
		admissions := make(map[string]int)
		for _, d := range w.decisions(executions) {
			if d.Kind == schemas.KindAdmission {
				admissions[d.ExecutionID]++
			}
		}
		for id, n := range admissions {
			if n != 1 {
				t.Errorf("execution %s has %d decisions, want one", id, n)
			}
		}
		if len(admissions) != executions {
			t.Errorf("%d executions were decided, want %d", len(admissions), executions)
		}
	})
}

func TestTheLimitHoldsOverTheEventPath(t *testing.T) {
	t.Parallel()
	w := newWhole(t, subscriptions.StoreOptions{})
	for range 2 {
		w.start(w.enforcer, w.keep, func(o *consumers.Options) { o.BatchSize = 32 })
	}
	const asked = 120
	for i := range asked {
		w.request("narrow", fmt.Sprintf("x%03d", i))
	}
	var allowed []string
	codes := make(map[int]int)
	for _, d := range w.decisions(asked) {
		codes[d.Code]++
		if d.Allowed {
			allowed = append(allowed, d.ExecutionID)
		}
	}
	if diff := cmp.Diff(map[int]int{0: 5, 9002: asked - 5}, codes); diff != "" {
		t.Errorf("codes (-want +got):\n%s", diff)
	}
	w.folded()
	redis, folded := w.outstanding("narrow")
	if redis.Used != 5 || redis.Running != 5 || folded.Used != 5 || len(folded.Leases) != 5 {
		t.Errorf("Redis has used %d, running %d, the ledger %d and %d leases, want 5 of all", redis.Used, redis.Running, folded.Used, len(folded.Leases))
	}
	for _, id := range allowed {
		w.complete("narrow", id, schemas.OutcomeSucceeded)
	}
	w.settled("completed")
	w.folded()
	redis, folded = w.outstanding("narrow")
	if redis.Used != 5 || redis.Running != 0 || folded.Used != 5 || len(folded.Leases) != 0 {
		t.Errorf("at the end Redis has used %d, running %d, the ledger %d and %d leases, want 5, 0, 5, 0", redis.Used, redis.Running, folded.Used, len(folded.Leases))
	}
	if denials := w.denials("narrow"); denials != asked-5 {
		t.Errorf("the ledger counts %d denials, want %d", denials, asked-5)
	}
}
