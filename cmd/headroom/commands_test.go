package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

func TestWrongUsageIsStatusTwoWithAHint(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"no command":           {nil, `Run "headroom --help"`},
		"unknown command":      {[]string{"bogus"}, `Run "headroom --help"`},
		"unknown subcommand":   {[]string{"plans", "bogus"}, `Run "headroom plans --help"`},
		"unknown flag":         {[]string{"plans", "list", "--bogus"}, `Run "headroom plans list --help"`},
		"missing argument":     {[]string{"plans", "apply"}, `Run "headroom plans apply --help"`},
		"missing flag":         {[]string{"workspaces", "assign", "ws"}, "--plan"},
		"output of no kind":    {[]string{"plans", "list", "-o", "xml"}, `"table","json"`},
		"doctor with a word":   {[]string{"doctor", "redis"}, `Run "headroom doctor --help"`},
		"workspace of no form": {[]string{"workspaces", "show", "a.b"}, `workspace "a.b": must be`},
		"execution of no form": {[]string{"decisions", "ws", "--execution", "a b"}, `execution "a b": must be`},
		"limit out of range":   {[]string{"decisions", "ws", "--limit", "1001"}, "1 to 1000"},
		"interval of no form":  {[]string{"workspaces", "assign", "ws", "--plan", "p", "--interval", "fortnight"}, "fortnight"},
		"start of no form":     {[]string{"workspaces", "assign", "ws", "--plan", "p", "--start", "soon"}, "--start"},
		"trial of no form":     {[]string{"workspaces", "assign", "ws", "--plan", "p", "--trial", "fortnight"}, "--trial"},
		"trial to nowhere":     {[]string{"workspaces", "assign", "ws", "--plan", "p", "--trial", "14d", "--after-trial", "stop"}, "convert, expire or default"},
		"source not by hand":   {[]string{"workspaces", "assign", "ws", "--plan", "p", "--source", "stripe"}, `"enterprise","system"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := (&installation{t: t}).run(test.args...)
			if exitCode(err) != exitUsage || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error is %v (status %d), want status 2 and %q in it", err, exitCode(err), test.says)
			}
		})
	}
}

func TestWrongSettingsAreStatusTwo(t *testing.T) {
	t.Parallel()
	_, _, err := (&installation{t: t, settings: map[string]string{"HEADROOM_WORKERS": "x"}}).run("serve")
	if exitCode(err) != exitUsage || !strings.Contains(err.Error(), "HEADROOM_WORKERS") {
		t.Errorf("error is %v, want status 2 and the variable's name", err)
	}
}

func TestHelpIsNoFailure(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--help"},
		{"serve", "--help"},
		{"migrate", "--help"},
		{"doctor", "--help"},
		{"plans", "--help"},
		{"plans", "apply", "--help"},
		{"workspaces", "assign", "-h"},
		{"workspaces", "override", "--help"},
		{"invalidate", "--help"},
		{"decisions", "--help"},
		{"deadletters", "replay", "--help"},
		{"dev", "--help"},
		{"help"},
		{"help", "plans", "apply"},
	} {
		stdout, _, err := (&installation{t: t}).run(args...)
		if err != nil || !strings.HasPrefix(stdout, "Usage: headroom") {
			t.Errorf("headroom %v: %v\n%s", args, err, stdout)
		}
	}
}

func TestVersionTellsWhatTheBinaryIs(t *testing.T) {
	t.Parallel()
	i := &installation{t: t}
	if line := i.must("version"); !strings.HasPrefix(line, "headroom ") {
		t.Errorf("version prints %q", line)
	}
	var b build
	i.mustJSON(&b, "version")
	if b.Version == "" || !strings.HasPrefix(b.Go, "go") {
		t.Errorf("version is %+v", b)
	}
}

func TestPlansAreAppliedComparedListedAndShown(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	if text := i.must("plans", "list"); !strings.Contains(text, "no plans") {
		t.Errorf("before the first apply the list is %q", text)
	}
	if text := i.must("plans", "diff", demoCatalog, "-o", "json"); strings.Contains(text, `"from": 0`) || strings.Contains(text, `"to": 0`) {
		t.Errorf("diff names a revision that does not exist:\n%s", text)
	}
	text := i.must("plans", "apply", demoCatalog)
	for _, part := range []string{"free", "enterprise", "created", "catalog revision 1 is in force"} {
		if !strings.Contains(text, part) {
			t.Errorf("apply prints no %q:\n%s", part, text)
		}
	}
	if text := i.must("plans", "diff", demoCatalog); text != "no changes\n" {
		t.Errorf("diff of the same file prints %q", text)
	}
	edited := catalogFile(t, "max_executions: 100\n", "max_executions: unlimited\n")
	if text := i.must("plans", "diff", edited); !strings.Contains(text, "limits.max_executions") || !strings.Contains(text, "unlimited") {
		t.Errorf("diff prints no change of max_executions:\n%s", text)
	}
	var applied subscriptions.Applied
	i.mustJSON(&applied, "plans", "apply", edited)
	if applied.Revision != 2 {
		t.Errorf("the second apply makes revision %d, want 2", applied.Revision)
	}

	var plans []subscriptions.PlanRevision
	i.mustJSON(&plans, "plans", "list")
	if len(plans) != 4 || plans[0].Key != "free" || !plans[0].Limits.MaxExecutions.IsUnlimited() || plans[0].Revision != 2 {
		t.Errorf("the list is %+v, want four plans, free first, unlimited, revision 2", plans)
	}
	var revisions []subscriptions.PlanRevision
	i.mustJSON(&revisions, "plans", "show", "free")
	if len(revisions) != 2 || revisions[1].Limits.MaxExecutions != schemas.LimitOf(100) {
		t.Errorf("show has revisions %+v, want 2 and the first with 100", revisions)
	}
	text = i.must("plans", "show", "free")
	for _, part := range []string{"max_executions", "unlimited", "feature automations", "100"} {
		if !strings.Contains(text, part) {
			t.Errorf("show prints no %q:\n%s", part, text)
		}
	}
	if _, _, err := i.run("plans", "show", "platinum"); exitCode(err) != exitFailed || !strings.Contains(err.Error(), "enterprise") {
		t.Errorf("show of no plan: %v, want a failure that names the plans there are", err)
	}
}

func TestEveryFaultOfACatalogIsPrintedWithItsLine(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	path := catalogFile(t, "max_executions: 100\n", "max_executions: -5\n", "rank: 10\n", "rank: ten\n", "default: true", "default: false")
	for _, command := range [][]string{{"plans", "apply", path}, {"plans", "diff", path}, {"dev", "--catalog", path}} {
		_, stderr, err := i.run(command...)
		if exitCode(err) != exitFailed || !strings.Contains(err.Error(), "3 faults") {
			t.Errorf("%s: error is %v, want a failure that counts 3 faults", command, err)
		}
		located := 0
		for line := range strings.Lines(stderr) {
			if strings.HasPrefix(line, path+":") || strings.HasPrefix(line, path+": ") {
				located++
			}
		}
		if located != 3 {
			t.Errorf("%s: %d faults have a place, want 3:\n%s", command, located, stderr)
		}
	}
	if text := i.must("plans", "list"); !strings.Contains(text, "no plans") {
		t.Errorf("a catalog with faults was applied:\n%s", text)
	}
}

func TestAWorkspaceIsAssignedListedAndShown(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("migrate")
	i.must("plans", "apply", demoCatalog)

	var row map[string]any
	i.mustJSON(&row, "workspaces", "assign", "ws_a", "--plan", "pro", "--interval", "10d", "--start", "2026-01-01")
	for _, field := range []string{
		"id", "source", "source_id", "account", "livemode", "status", "payment_state", "kind", "quantity",
		"period_start", "period_end", "usage_epoch", "cancel_at", "plan_unresolved",
	} {
		if _, there := row[field]; !there {
			t.Errorf("the row of assign has no %s", field)
		}
	}
	if row["plan_key"] != "pro" || row["source"] != "enterprise" || row["kind"] != "created" {
		t.Errorf("the row is %v", row)
	}

	var amended, renewed api.SubscriptionRow
	i.mustJSON(&amended, "workspaces", "assign", "ws_a", "--plan", "free")
	if amended.ID != row["id"] || amended.PlanKey != "free" {
		t.Errorf("assigning an open period made %+v, want the same row amended", amended)
	}
	i.mustJSON(&renewed, "workspaces", "assign", "ws_a", "--plan", "enterprise", "--new-period")
	if renewed.ID == amended.ID || renewed.PreviousID == nil || *renewed.PreviousID != amended.ID {
		t.Errorf("--new-period made %+v, want a row that follows %s", renewed, amended.ID)
	}

	i.must("workspaces", "assign", "ws_b", "--plan", "pro", "--source", "system")
	var items []workspaceItem
	i.mustJSON(&items, "workspaces", "list")
	if len(items) != 2 || items[0].WorkspaceID != "ws_a" || items[1].Subscription.Source != "system" {
		t.Errorf("the list is %+v", items)
	}
	if _, stderr, err := i.run("workspaces", "list", "--limit", "1"); err != nil || !strings.Contains(stderr, "--after ws_a") {
		t.Errorf("a page that is not the last says %q (%v), want how to get the next", stderr, err)
	}
	if _, stderr, err := i.run("workspaces", "list", "--limit", "2"); err != nil || stderr != "" {
		t.Errorf("the last page says %q (%v), want nothing", stderr, err)
	}
	if text := i.must("workspaces", "list", "--after", "ws_a"); strings.Contains(text, "ws_a") || !strings.Contains(text, "ws_b") {
		t.Errorf("the page after ws_a is:\n%s", text)
	}

	var view api.WorkspaceView
	i.mustJSON(&view, "workspaces", "show", "ws_a")
	if view.PlanKey != "enterprise" || view.Subscription == nil || view.Subscription.ID != renewed.ID || !view.Usage.Exact {
		t.Errorf("show is %+v", view)
	}
	if l := view.Limits["max_executions"]; !l.Unlimited || l.Value != nil || l.From != "plan" {
		t.Errorf("max_executions is %+v, want unlimited from the plan", l)
	}
	if _, _, err := i.run("workspaces", "assign", "ws_a", "--plan", "platinum"); exitCode(err) != exitFailed {
		t.Errorf("assigning no plan: %v, want a failure", err)
	}
	if _, _, err := i.run("workspaces", "assign", "ws_a", "--plan", "pro", "--start", "2999-01-01"); exitCode(err) != exitUsage {
		t.Errorf("a start in the future: %v, want wrong usage", err)
	}
}

func TestAWorkspaceNeverSeenIsShownOnTheDefaultPlan(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	var view api.WorkspaceView
	i.mustJSON(&view, "workspaces", "show", "ws_new")
	if view.PlanKey != "free" || view.Subscription != nil || view.Limits["max_executions"].From != "default" {
		t.Errorf("show is %+v, want plan free by default", view)
	}
	if text := i.must("workspaces", "show", "ws_new"); !strings.Contains(text, "none, on the default plan") {
		t.Errorf("show prints:\n%s", text)
	}
	_, _, err := i.with(map[string]string{"HEADROOM_UNKNOWN_WORKSPACE": "deny"}).run("workspaces", "show", "ws_new")
	if exitCode(err) != exitFailed || !strings.Contains(err.Error(), "not entitled") {
		t.Errorf("with unknown workspaces denied show says %v", err)
	}
}

func TestDecisionsShowWhatWasDecided(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	if text := i.must("decisions", "ws"); text != "no decisions\n" {
		t.Errorf("before the first decision: %q", text)
	}
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	js := i.jetStream()
	var allowed, denied []schemas.DecisionMade
	for _, execution := range []string{"e1", "e2", "e3", "e4"} { // free runs two at once
		if d := i.decide(js, "ws", execution); d.Allowed {
			allowed = append(allowed, d)
		} else {
			denied = append(denied, d)
		}
	}
	if len(allowed) != 2 || len(denied) != 2 {
		t.Fatalf("%d allowed and %d denied, want 2 and 2", len(allowed), len(denied))
	}
	listed := awaitDecisions(t, i, len(allowed))
	for n := 1; n < len(listed); n++ {
		if listed[n].DecidedAt.After(listed[n-1].DecidedAt) {
			t.Errorf("decision %d is newer than the one before it", n)
		}
	}
	if text := i.must("decisions", "ws"); !strings.Contains(text, "PlanConcurrentExecutionLimitReached") || !strings.Contains(text, "allowed") {
		t.Errorf("the table is:\n%s", text)
	}

	var one []schemas.DecisionMade
	i.mustJSON(&one, "decisions", "ws", "--execution", denied[0].ExecutionID)
	if diff := cmp.Diff([]schemas.DecisionMade{denied[0]}, one, cmp.AllowUnexported(schemas.Limit{})); diff != "" {
		t.Errorf("the denial that was rolled up differs from the one published (-want +got):\n%s", diff)
	}
	i.mustJSON(&one, "decisions", "ws", "--limit", "1")
	if len(one) != 1 {
		t.Errorf("--limit 1 shows %d", len(one))
	}
	var view api.WorkspaceView
	i.mustJSON(&view, "workspaces", "show", "ws")
	if view.Usage.Executions != 2 || view.Usage.Concurrent != 2 || view.Ledger.Executions != 2 || view.Ledger.Peak != 2 {
		t.Errorf("usage is %+v, ledger %+v, want 2 executions, 2 running, peak 2 in both", view.Usage, view.Ledger)
	}
}

// awaitDecisions lists the workspace's decisions until the ledger has so many
// allowed ones and a denial; those of one minute are one line.
func awaitDecisions(t *testing.T, i *installation, wanted int) []schemas.DecisionMade {
	t.Helper()
	deadline := time.After(patience)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		var listed []schemas.DecisionMade
		i.mustJSON(&listed, "decisions", "ws")
		allowed := 0
		for _, d := range listed {
			if d.Allowed {
				allowed++
			}
		}
		if allowed == wanted && len(listed) > wanted {
			return listed
		}
		select {
		case <-deadline:
			t.Fatalf("the ledger has %d lines, %d allowed, want %d and a denial", len(listed), allowed, wanted)
		case <-ticker.C:
		}
	}
}

func TestAnUnpreparedDatabaseSaysWhatToDo(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	if _, err := schematest.Postgres(t).Exec(t.Context(), `DROP TABLE plan_revisions CASCADE`); err != nil {
		t.Fatal(err)
	}
	if _, _, err := i.run("plans", "list"); exitCode(err) != exitFailed || !strings.Contains(err.Error(), "headroom migrate") {
		t.Errorf("error is %v, want one that names the command to run", err)
	}
}

func TestACommandThatReachesNoDatabaseNamesTheSettingAndNoPassword(t *testing.T) {
	t.Parallel()
	url := "postgres://u:" + password + "@127.0.0.1:1/db?sslmode=disable"
	_, stderr, err := (&installation{t: t, settings: map[string]string{"HEADROOM_POSTGRES_URL": url}}).run("plans", "list")
	if exitCode(err) != exitFailed || !strings.Contains(err.Error(), "HEADROOM_POSTGRES_URL") {
		t.Errorf("error is %v, want a failure that names the setting", err)
	}
	if strings.Contains(err.Error()+stderr, password) {
		t.Errorf("the password is shown: %v", err)
	}
}
