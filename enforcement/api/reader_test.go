package api_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

const limitsOfPro = `{
	"max_executions": {"value": 100, "unlimited": false, "from": "plan"},
	"max_concurrent_executions": {"value": 10, "unlimited": false, "from": "plan"},
	"max_tasks_per_execution": {"value": null, "unlimited": true, "from": "override"},
	"max_execution_duration_minutes": {"value": 60, "unlimited": false, "from": "plan"},
	"max_execution_payload_size_mb": {"value": 50, "unlimited": false, "from": "plan"},
	"max_storage_mb": {"value": 10, "unlimited": false, "from": "plan"},
	"max_executions_per_minute": {"value": 600, "unlimited": false, "from": "plan"}}`

func TestAWorkspaceIsShownInTheShapeOfTheContract(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	row := l.assign("ws", "pro")
	live, err := l.store.ChangeOverrides(t.Context(), subscriptions.OverrideChange{
		WorkspaceID: "ws", Set: map[string]schemas.Limit{"max_tasks_per_execution": schemas.Unlimited}, Reason: "a pilot", Cause: "ann",
	})
	if err != nil {
		t.Fatal(err)
	}
	l.start("ws", "a", "b", "c")
	l.enforcer.Release(t.Context(), []enforcement.Completion{{WorkspaceID: "ws", ExecutionID: "b", Outcome: schemas.OutcomeSucceeded}})
	l.consume("ws", "automations", 4, "")
	l.consume("ws", "emails", 7, "")
	l.consume("ws", "seats", 3, "")
	l.consume("ws", schemas.FeatureStorage, schemas.BytesPerMegabyte/2, "")
	got := l.view("ws")
	changes := got.Changes
	if len(changes) != 2 || changes[0].Cause != "ann: a pilot" {
		t.Fatalf("the changes are %+v", changes)
	}
	change := func(i int) string {
		return fmt.Sprintf(`{"at": %s, "field": %q, "from": %q, "to": %q, "cause": "ann: a pilot"}`,
			quoted(changes[i].At), changes[i].Field, changes[i].From, changes[i].To)
	}
	period := fmt.Sprintf(`"period_start": %s, "period_end": %s`, quoted(row.PeriodStart), quoted(row.PeriodEnd))
	subscription := fmt.Sprintf(`"id": %q, "workspace_id": "ws", "source": "enterprise", "source_id": "ws", "account": "", "livemode": true,
		"status": "active", "payment_state": "none", "kind": "created", "quantity": 1, "plan_key": "pro", "plan_revision": 1, %s,
		"usage_epoch": %q, "interval": "month", "billing_start": %s, "billing_end": %s, "cancel_at": null, "plan_unresolved": false,
		"closed_at": null, "previous_id": null`, row.ID, period, row.UsageEpoch, quoted(row.PeriodStart), quoted(row.PeriodEnd))
	amended := `"changes": [` + change(0) + `, ` + change(1) + `]`
	golden(t, "the workspace", fmt.Sprintf(`{
		"workspace_id": "ws", "revision": %d, "plan_key": "pro", "plan_revision": 1, %s,
		"subscription": {%s},
		"limits": %s,
		"usage": {"executions": 3, "concurrent": 2, "peak": 3, "storage_mb": 0.5, "exact": true, "as_of": %s},
		"ledger": {"executions": 3, "concurrent": 3, "peak": 3, "exact": false, "as_of": %s},
		"features": {
			"automations": {"kind": "stock", "used": 4, "limit": 5, "unlimited": false, "remaining": 1, "locked": 0, "included": true, "from": "plan"},
			"seats": {"kind": "stock", "used": 3, "limit": null, "unlimited": true, "remaining": null, "locked": 0, "included": true, "from": "plan"},
			"emails": {"kind": "flow", "used": 7, "limit": 100, "unlimited": false, "remaining": 93, "locked": 0, "included": true, "from": "plan", "resets_at": %s},
			"sso": {"kind": "boolean", "used": 0, "limit": null, "unlimited": true, "remaining": null, "locked": 0, "included": true, "from": "plan"},
			"audit": {"kind": "boolean", "used": 0, "limit": 0, "unlimited": false, "remaining": 0, "locked": 0, "included": false, "from": "plan"}},
		"over_limit": [], "pinned": null,
		"overrides": [{"field": "max_tasks_per_execution", "value": null, "unlimited": true, "reason": "a pilot", "expires_at": null, "set_at": %s, "set_by": "ann"}],
		%s,
		"subscriptions": [{%s, %s}]}`,
		got.Revision, period, subscription, limitsOfPro, quoted(got.Usage.AsOf), quoted(got.Ledger.AsOf), quoted(row.PeriodEnd),
		quoted(live[0].SetAt), amended, subscription, amended), got)
	if got.Revision < 2 || got.Usage.Cause != nil {
		t.Errorf("revision %d, cause %v", got.Revision, got.Usage.Cause)
	}

	rows, err := l.Subscriptions(t.Context(), "ws", 10)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "the rows", "[{"+subscription+", "+amended+"}]", rows)
}

func TestAWorkspaceNeverSeenIsOnTheDefaultPlan(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	got := l.view("stranger")
	if got.Revision != 0 || got.PlanKey != "free" || got.Subscription != nil || !got.Usage.Exact || got.Limits["max_storage_mb"].From != api.FromDefault {
		t.Errorf("the view is %+v", got)
	}
	included := map[string]bool{}
	for name, f := range got.Features {
		included[name] = f.Included
		if f.Used != 0 || f.From != api.FromDefault {
			t.Errorf("feature %s is %+v", name, f)
		}
	}
	if diff := cmp.Diff(map[string]bool{"automations": true, "seats": false, "emails": false, "sso": false, "audit": false}, included); diff != "" {
		t.Errorf("included (-want +got):\n%s", diff)
	}
	golden(t, "the empty lists", `[[], [], [], []]`, []any{got.OverLimit, got.Overrides, got.Changes, got.Subscriptions})
	for what, list := range map[string]func() (any, error){
		"executions":    func() (any, error) { return l.Executions(t.Context(), "stranger") },
		"subscriptions": func() (any, error) { return l.Subscriptions(t.Context(), "stranger", 0) },
		"decisions":     func() (any, error) { return l.Decisions(t.Context(), ledger.Query{Workspace: "stranger"}) },
	} {
		found, err := list()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		golden(t, what, "[]", found)
	}
}

func TestWhoMayHaveNoPlanIsNotShown(t *testing.T) {
	t.Parallel()
	l := newLibrary(t, subscriptions.StoreOptions{DenyUnknown: true})
	if _, err := l.Workspace(t.Context(), "stranger"); !errors.Is(err, subscriptions.ErrNotEntitled) {
		t.Errorf("the error is %v", err)
	}
	if _, err := l.Check(t.Context(), "stranger", []api.Probe{{Execution: true}}); !errors.Is(err, subscriptions.ErrNotEntitled) {
		t.Errorf("of a check the error is %v", err)
	}
}

func TestWithoutRedisTheUsageIsTheLedgers(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.start("ws", "a", "b")
	away := l.away()
	got, err := away.Workspace(t.Context(), "ws")
	if err != nil {
		t.Fatal(err)
	}
	if u := got.Usage; u.Exact || u.Executions != 2 || u.Concurrent != 2 || u.Peak != 2 || !errors.Is(u.Cause, enforcement.ErrUnavailable) {
		t.Errorf("the usage is %+v", u)
	}
	for what, err := range map[string]error{
		"executions": second(away.Executions(t.Context(), "ws")),
		"check":      second(away.Check(t.Context(), "ws", []api.Probe{{Execution: true}})),
	} {
		if !errors.Is(err, enforcement.ErrUnavailable) {
			t.Errorf("%s: the error is %v", what, err)
		}
	}
	// A check of features alone needs no Redis.
	if answers, err := away.Check(t.Context(), "ws", []api.Probe{{Feature: "automations"}}); err != nil || !answers[0].Allowed {
		t.Errorf("a check of a feature is %+v, %v", answers, err)
	}

	if err := l.redis.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if u := l.view("ws").Usage; u.Exact || u.Executions != 2 || !errors.Is(u.Cause, api.ErrPeriodLost) {
		t.Errorf("after Redis lost it the usage is %+v", u)
	}
}

func second[V any](_ V, err error) error { return err }

func TestWithoutPostgresEveryReadIsUnavailable(t *testing.T) {
	t.Parallel()
	config, err := pgxpool.ParseConfig("postgres://nobody@127.0.0.1:1/none?connect_timeout=1")
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store := subscriptions.NewStore(pool, subscriptions.StoreOptions{})
	r := api.NewReader(api.ReaderOptions{
		Store: store, Ledger: ledger.New(pool), Gauge: enforcement.New(enforcement.Options{}),
		Counts: usage.New(usage.Options{Pool: pool, Plans: stored{store}, Catalog: store}),
	})
	for what, err := range map[string]error{
		"workspace":          second(r.Workspace(t.Context(), "ws")),
		"subscriptions":      second(r.Subscriptions(t.Context(), "ws", 1)),
		"decisions":          second(r.Decisions(t.Context(), ledger.Query{Workspace: "ws"})),
		"check a feature":    second(r.Check(t.Context(), "ws", []api.Probe{{Feature: "automations"}})),
		"check an execution": second(r.Check(t.Context(), "ws", []api.Probe{{Execution: true}})),
	} {
		if !errors.Is(err, enforcement.ErrUnavailable) && !errors.Is(err, usage.ErrUnavailable) {
			t.Errorf("%s: the error is %v", what, err)
		}
	}
}

func TestWhatIsNoIDIsRefused(t *testing.T) {
	t.Parallel()
	r := api.NewReader(api.ReaderOptions{})
	for what, err := range map[string]error{
		"workspace":     second(r.Workspace(t.Context(), "a.b")),
		"executions":    second(r.Executions(t.Context(), "")),
		"subscriptions": second(r.Subscriptions(t.Context(), "*", 1)),
		"decisions":     second(r.Decisions(t.Context(), ledger.Query{Workspace: "a>b"})),
		"execution":     second(r.Decisions(t.Context(), ledger.Query{Workspace: "ws", Execution: "a b"})),
		"check":         second(r.Check(t.Context(), "a{b", []api.Probe{{Execution: true}})),
	} {
		var wrong *usage.InvalidArgument
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Detail, "must be 1 to 128 letters") {
			t.Errorf("%s: the error is %v", what, err)
		}
	}
}

func TestWhatIsOverALimitIsReported(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.assign("ws", "pro")
	l.start("ws", "a", "b", "c", "d", "e", "f")
	for i := range 4 {
		l.consume("ws", "automations", 1, fmt.Sprintf("robot-%d", i))
	}
	l.consume("ws", "seats", 9, "")
	l.consume("ws", "emails", 20, "")
	l.consume("ws", schemas.FeatureStorage, schemas.BytesPerMegabyte+1, "")
	l.assign("ws", "free")
	got := l.view("ws")
	golden(t, "over limit", `[
		{"limit": "max_executions", "used": 6, "value": 5},
		{"limit": "max_concurrent_executions", "used": 6, "value": 2},
		{"limit": "max_storage_mb", "used": 2, "value": 1},
		{"limit": "features.automations", "used": 4, "value": 2},
		{"limit": "features.emails", "used": 20, "value": 0},
		{"limit": "features.seats", "used": 9, "value": 0}]`, got.OverLimit)
	if f := got.Features["automations"]; f.Locked != 2 || *f.Remaining != 0 {
		t.Errorf("automations are %+v", f)
	}
	if f := got.Features["seats"]; f.Included || f.Used != 9 {
		t.Errorf("seats are %+v", f)
	}
}

func TestExecutionsAreShownInTheShapeOfTheContract(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	row := l.assign("ws", "pro")
	a := l.start("ws", "a")[0]
	tasks, payload := int64(12), int64(2048)
	l.enforcer.Extend(t.Context(), []enforcement.Progress{{WorkspaceID: "ws", ExecutionID: "a", Tasks: &tasks, PayloadBytes: &payload}})
	b := l.start("other", "b")[0]
	list := func(workspace string) []api.ExecutionView {
		t.Helper()
		got, err := l.Executions(t.Context(), workspace)
		if err != nil || len(got) != 1 {
			t.Fatalf("%d executions, %v", len(got), err)
		}
		return got
	}
	got := list("ws")
	golden(t, "executions", fmt.Sprintf(`[{"execution_id": "a", "subscription_id": %q, "started_at": %s, "lease_expires_at": %s, "tasks": 12, "payload_bytes": 2048}]`,
		row.ID, quoted(a.DecidedAt), quoted(got[0].LeaseExpiresAt)), got)
	if got[0].LeaseExpiresAt.Before(*a.LeaseExpiresAt) {
		t.Errorf("the lease ends at %v, before %v", got[0].LeaseExpiresAt, a.LeaseExpiresAt)
	}
	golden(t, "executions on the default plan", fmt.Sprintf(`[{"execution_id": "b", "subscription_id": null, "started_at": %s, "lease_expires_at": %s, "tasks": null, "payload_bytes": null}]`,
		quoted(b.DecidedAt), quoted(*b.LeaseExpiresAt)), list("other"))

	// Redis loses everything, and learns of what runs from the ledger with the next one.
	if err := l.redis.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	l.start("ws", "c")
	l.enforcer.Release(t.Context(), []enforcement.Completion{{WorkspaceID: "ws", ExecutionID: "c", Outcome: schemas.OutcomeSucceeded}})
	if rebuilt := list("ws")[0]; rebuilt.StartedAt == nil || !rebuilt.StartedAt.Equal(a.DecidedAt) || rebuilt.Tasks != nil {
		t.Errorf("after a loss it is %+v, want it started %v", rebuilt, a.DecidedAt)
	}
}

func TestDecisionsArePagedNewestFirst(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.assign("ws", "pro")
	var want []string
	for _, execution := range []string{"a", "b", "c", "d", "e"} {
		l.start("ws", execution)
		want = append([]string{execution}, want...)
	}
	var got []string
	for q := (ledger.Query{Workspace: "ws", Limit: 2}); ; {
		page, err := l.Decisions(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, d := range page {
			got = append(got, d.ExecutionID)
		}
		q.Before = page[len(page)-1].DecidedAt
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
	one, err := l.Decisions(t.Context(), ledger.Query{Workspace: "ws", Execution: "c"})
	if err != nil || len(one) != 1 || one[0].ExecutionID != "c" || one[0].Exact != nil || one[0].Message != "Allowed." || !one[0].ResetsAt.Equal(one[0].PeriodEnd) {
		t.Errorf("those of one execution are %+v, %v", one, err)
	}
}
