package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

func TestACatalogIsAppliedToRunningPeriods(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	for _, ws := range []string{"a", "b"} {
		i.must("workspaces", "assign", ws, "--plan", "free")
	}
	edited := catalogFile(t, "max_executions: 100\n", "max_executions: 9\n")
	if text := i.must("plans", "apply", edited); !strings.Contains(text, "2 running periods stay on these plans") {
		t.Errorf("apply alone prints:\n%s", text)
	}
	// The catalog is in force already; what is behind it is still found.
	var applied appliedView
	i.mustJSON(&applied, "plans", "apply", edited, "--to-running")
	if applied.Revision != 2 || applied.ToRunning == nil || *applied.ToRunning != (subscriptions.AppliedToRunning{Workspaces: 2, Periods: 2}) {
		t.Errorf("applied is %+v", applied)
	}
	var view api.WorkspaceView
	i.mustJSON(&view, "workspaces", "show", "a")
	if l := view.Limits["max_executions"]; l.Value == nil || *l.Value != 9 || view.PlanRevision != 2 {
		t.Errorf("show is %+v", view)
	}
	text := i.must("plans", "apply", edited, "--to-running")
	for _, part := range []string{"no changes", "no running period is behind its plan", "catalog revision 2 is in force"} {
		if !strings.Contains(text, part) {
			t.Errorf("the same again prints no %q:\n%s", part, text)
		}
	}
}

func TestAnApplyToRunningPeriodsThatFailsSaysHowToGoOn(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	for _, ws := range []string{"a", "b", "c"} {
		i.must("workspaces", "assign", ws, "--plan", "free")
	}
	if _, err := schematest.Postgres(t).Exec(t.Context(), `UPDATE subscriptions SET snapshot = '{}' WHERE workspace_id = 'b'`); err != nil {
		t.Fatal(err)
	}
	_, _, err := i.run("plans", "apply", catalogFile(t, "max_executions: 100\n", "max_executions: 9\n"), "--to-running")
	if exitCode(err) != exitFailed {
		t.Fatalf("error is %v", err)
	}
	for _, part := range []string{"workspace b", "Catalog revision 2 is in force", "2 running periods of 2 workspaces changed", "run the same command again"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}

func TestDiffCountsTheWorkspacesItWouldPutOverALimit(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	pool := schematest.Postgres(t)
	for n := range 3 {
		var row api.SubscriptionRow
		i.mustJSON(&row, "workspaces", "assign", fmt.Sprintf("paying%d", n), "--plan", "free")
		if _, err := pool.Exec(t.Context(), `INSERT INTO period_usage (workspace_id, usage_epoch, used) VALUES ($1, $2, $3)`, row.WorkspaceID, row.UsageEpoch, 9+n); err != nil {
			t.Fatal(err)
		}
	}
	_, err := pool.Exec(t.Context(), `INSERT INTO period_usage (workspace_id, usage_epoch, used)
		VALUES ('stranger', 'default.' || to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM'), 50)`)
	if err != nil {
		t.Fatal(err)
	}
	edited := catalogFile(t, "max_executions: 100\n", "max_executions: 9\n")
	var diff subscriptions.Diff
	i.mustJSON(&diff, "plans", "diff", edited)
	want := []subscriptions.OverLimit{
		{Limit: "max_executions", When: subscriptions.OverToRunning, Workspaces: 2},
		{Limit: "max_executions", When: subscriptions.OverAtOnce, Workspaces: 1},
	}
	if d := cmp.Diff(want, diff.Changes[0].OverLimit); d != "" || diff.Changes[0].Key != "free" {
		t.Errorf("over limit of %s (-want +got):\n%s", diff.Changes[0].Key, d)
	}
	if text := i.must("plans", "diff", edited, "-o", "json"); !strings.Contains(text, `"over_limit": []`) {
		t.Errorf("plans that put nobody over a limit do not say so:\n%s", text)
	}
	text := i.must("plans", "diff", edited)
	for _, part := range []string{
		"over max_executions of free: 2 workspaces, at once with --to-running; else",
		"over max_executions of free: 1 workspace, at once, as the default plan's",
		"3 running periods stay",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("diff prints no %q:\n%s", part, text)
		}
	}
	if text := i.must("plans", "diff", demoCatalog); text != "no changes\n" {
		t.Errorf("diff of the same file prints %q", text)
	}

	i.must("plans", "apply", edited, "--to-running")
	var view api.WorkspaceView
	i.mustJSON(&view, "workspaces", "show", "paying2")
	if len(view.OverLimit) != 1 || view.OverLimit[0] != (api.OverLimitView{Limit: "max_executions", Used: 11, Value: 9}) {
		t.Logf("usage %+v ledger %+v", view.Usage, view.Ledger)
		t.Errorf("the over-limit report is %+v", view.OverLimit)
	}
}

func TestDiffCountsTheWorkspacesItWouldPutOverAFeature(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	i.must("workspaces", "assign", "paying", "--plan", "free")
	pool := schematest.Postgres(t)
	store := subscriptions.NewStore(pool, subscriptions.StoreOptions{})
	counters := usage.New(usage.Options{Pool: pool, Plans: storedPlans{store}})
	for _, change := range []usage.Change{
		{WorkspaceID: "paying", Feature: "automations", Quantity: 5},
		{WorkspaceID: "stranger", Feature: "automations", Quantity: 4},
		{WorkspaceID: "paying", Feature: schemas.FeatureStorage, Quantity: 90 << 20},
	} {
		if _, err := counters.ConsumeOnce(t.Context(), usage.Once{}, change); err != nil {
			t.Fatal(err)
		}
	}
	text := i.must("plans", "diff", catalogFile(t, "automations: 5", "automations: 3", "max_storage_mb: 100\n", "max_storage_mb: 50\n"))
	for _, part := range []string{
		"over max_storage_mb of free: 1 workspace, at once with --to-running; else from the next period, since what there is goes on",
		"over features.automations of free: 1 workspace, at once with --to-running; else from the next period",
		"over features.automations of free: 1 workspace, at once, as the default plan's",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("diff prints no %q:\n%s", part, text)
		}
	}
	var view api.WorkspaceView
	i.mustJSON(&view, "workspaces", "show", "paying")
	if f := view.Features["automations"]; f.Used != 5 || f.Remaining == nil || *f.Remaining != 0 || view.Usage.StorageMB != 90 {
		t.Errorf("show has %+v and %+v", f, view.Usage)
	}
	if text := i.must("workspaces", "show", "paying"); !hasLine(text, "feature automations", "5", "plan", "5") || !hasLine(text, "max_storage_mb", "100", "plan", "90") {
		t.Errorf("show prints:\n%s", text)
	}
}
