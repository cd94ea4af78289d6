package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

const readCatalog = `features: {emails: {kind: flow}, sso: {kind: boolean}, audit: {kind: boolean}}
plans:
  free:
    default: true
    rank: 0
    limits:
      max_executions: 5
      max_concurrent_executions: 2
      max_tasks_per_execution: 50
      max_execution_duration_minutes: 10
      max_execution_payload_size_mb: 5
      max_storage_mb: 1
      max_executions_per_minute: unlimited
    features: {automations: 2, sso: false}
  pro:
    rank: 10
    limits:
      max_executions: 100
      max_concurrent_executions: 10
      max_tasks_per_execution: 500
      max_execution_duration_minutes: 60
      max_execution_payload_size_mb: 50
      max_storage_mb: 10
      max_executions_per_minute: 600
    features: {automations: 5, seats: unlimited, emails: 100, sso: true}
`

// library is a Reader with all that it stands on.
type library struct {
	testing.TB

	*api.Reader

	pool     *pgxpool.Pool
	redis    redis.UniversalClient
	store    *subscriptions.Store
	ledger   *ledger.Store
	counters *usage.Counters
	enforcer *enforcement.Enforcer
}

// stored reads each plan from the database.
type stored struct{ *subscriptions.Store }

func (s stored) Lookup(ctx context.Context, workspace string, at time.Time) (subscriptions.PlanInfo, error) {
	return s.PlanInfo(ctx, workspace, at)
}

func (stored) Invalidate(string, int64) {}

// newLibrary has the catalog applied.
func newLibrary(t testing.TB, options ...subscriptions.StoreOptions) *library {
	t.Helper()
	o := subscriptions.StoreOptions{}
	if len(options) > 0 {
		o = options[0]
	}
	pool := schematest.Postgres(t)
	l := &library{TB: t, pool: pool, redis: schematest.Redis(t), store: subscriptions.NewStore(pool, o), ledger: ledger.New(pool)}
	catalog, err := subscriptions.ParseCatalog("catalog.yaml", []byte(readCatalog))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.store.ApplyCatalog(t.Context(), catalog); err != nil {
		t.Fatal(err)
	}
	l.counters = usage.New(usage.Options{Pool: pool, Plans: stored{l.store}, Catalog: l.store})
	l.enforcer = enforcement.New(enforcement.Options{Redis: l.redis, Plans: stored{l.store}, Usage: l.ledger, LeaseGrace: 5 * time.Minute, RebuildFence: 50 * time.Millisecond})
	l.Reader = l.over(l.enforcer)
	return l
}

// over is a Reader that reads another Redis.
func (l *library) over(gauge api.Gauge) *api.Reader {
	return api.NewReader(api.ReaderOptions{Store: l.store, Ledger: l.ledger, Gauge: gauge, Counts: l.counters, Log: schematest.Logger(l.TB)})
}

// away is a Reader whose Redis does not answer.
func (l *library) away() *api.Reader {
	l.Helper()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	l.Cleanup(func() { _ = client.Close() })
	return l.over(enforcement.New(enforcement.Options{Redis: client, Plans: stored{l.store}, Usage: l.ledger}))
}

func (l *library) assign(workspace, plan string) subscriptions.Subscription {
	l.Helper()
	row, err := l.store.Assign(l.Context(), subscriptions.Assignment{WorkspaceID: workspace, PlanKey: plan, Source: subscriptions.SourceEnterprise, Interval: "month"})
	if err != nil {
		l.Fatal(err)
	}
	return row
}

// admit asks again while the workspace is rebuilt.
func (l *library) admit(r enforcement.Request) enforcement.Result {
	for {
		got := l.enforcer.Admit(l.Context(), []enforcement.Request{r})[0]
		wait, is := errors.AsType[*enforcement.Rebuilding](got.Err)
		if !is {
			return got
		}
		select {
		case <-time.After(wait.After):
		case <-l.Context().Done():
			return got
		}
	}
}

// start admits executions, and has the ledger know.
func (l *library) start(workspace string, executions ...string) []schemas.DecisionMade {
	l.Helper()
	var made []schemas.DecisionMade
	var batch ledger.Batch
	for _, execution := range executions {
		got := l.admit(enforcement.Request{WorkspaceID: workspace, ExecutionID: execution, EventID: "request-" + execution, EventSource: "test"})
		if got.Err != nil {
			l.Fatal(got.Err)
		}
		made = append(made, got.Decision)
		batch.Decisions = append(batch.Decisions, ledger.Decision{
			DecisionMade: got.Decision, DefaultEpoch: subscriptions.DefaultEpoch(got.Decision.PeriodStart),
		})
	}
	if err := l.ledger.Fold(l.Context(), batch); err != nil {
		l.Fatal(err)
	}
	return made
}

func (l *library) consume(workspace, feature string, quantity int64, resource string) {
	l.Helper()
	_, err := l.counters.ConsumeOnce(l.Context(), usage.Once{}, usage.Change{WorkspaceID: workspace, Feature: feature, Quantity: quantity, ResourceID: resource})
	if err != nil {
		l.Fatal(err)
	}
}

func (l *library) view(workspace string) api.WorkspaceView {
	l.Helper()
	view, err := l.Workspace(l.Context(), workspace)
	if err != nil {
		l.Fatal(err)
	}
	return view
}

// golden fails the test unless the value is written as that JSON.
func golden(t testing.TB, what, want string, value any) {
	t.Helper()
	body, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var wanted, got any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatalf("the golden JSON of %s is none: %v\n%s", what, err, want)
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// quoted is an instant as JSON has it.
func quoted(at time.Time) string {
	return fmt.Sprintf("%q", at.UTC().Format(time.RFC3339Nano))
}
