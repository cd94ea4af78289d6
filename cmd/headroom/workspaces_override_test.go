package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestAWorkspaceIsGivenLimitsOfItsOwn(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	i.must("workspaces", "assign", "ws", "--plan", "pro")
	if text := i.must("workspaces", "override", "ws"); !strings.Contains(text, "no overrides") {
		t.Errorf("before the first one: %q", text)
	}
	if text := i.must("workspaces", "override", "ws", "-o", "json"); text != "[]\n" {
		t.Errorf("before the first one the list is %q", text)
	}
	until := time.Now().AddDate(1, 0, 0).UTC().Truncate(time.Second)
	var set []api.OverrideView
	i.mustJSON(&set, "workspaces", "override", "ws", "--limit", "max_executions=500", "--limit", "max_storage_mb=unlimited",
		"--feature", "automations=0", "--reason", "a pilot, with commas", "--until", until.Format(time.RFC3339))
	five, none := int64(500), int64(0)
	want := []api.OverrideView{
		{Field: "features.automations", Kind: "stock", Value: &none, ExpiresAt: &until},
		{Field: "max_executions", Value: &five, ExpiresAt: &until},
		{Field: "max_storage_mb", Unlimited: true, ExpiresAt: &until},
	}
	for n := range want {
		want[n].Reason, want[n].SetBy = "a pilot, with commas", "headroom workspaces override"
	}
	if diff := cmp.Diff(want, set, cmpopts.IgnoreFields(api.OverrideView{}, "SetAt")); diff != "" {
		t.Errorf("the list is (-want +got):\n%s", diff)
	}

	var view api.WorkspaceView
	i.mustJSON(&view, "workspaces", "show", "ws")
	if l := view.Limits["max_executions"]; l.Value == nil || *l.Value != 500 || l.From != "override" {
		t.Errorf("max_executions is %+v", l)
	}
	if l := view.Limits["max_storage_mb"]; !l.Unlimited || l.From != "override" {
		t.Errorf("max_storage_mb is %+v", l)
	}
	if l := view.Limits["max_tasks_per_execution"]; l.From != "plan" {
		t.Errorf("max_tasks_per_execution is %+v", l)
	}
	if f := view.Features["automations"]; f.Limit == nil || *f.Limit != 0 || f.From != "override" || !f.Included {
		t.Errorf("automations are %+v", f)
	}
	if diff := cmp.Diff(set, view.Overrides); diff != "" {
		t.Errorf("show has other overrides than the list:\n%s", diff)
	}
	text := i.must("workspaces", "show", "ws")
	for what, parts := range map[string][]string{
		"where a limit is from":   {"max_executions", "500", "override"},
		"where a feature is from": {"feature automations", "0", "override"},
		"the reason":              {"max_storage_mb", "unlimited", "a pilot, with commas"},
		"the change":              {"limits.max_executions", "500", "headroom workspaces override: a pilot, with commas"},
	} {
		if !hasLine(text, parts...) {
			t.Errorf("show does not tell %s:\n%s", what, text)
		}
	}

	i.mustJSON(&set, "workspaces", "override", "ws", "--clear", "max_executions", "--clear", "features.automations")
	if len(set) != 1 || set[0].Field != "max_storage_mb" {
		t.Errorf("after clearing two: %+v", set)
	}
	i.mustJSON(&view, "workspaces", "show", "ws")
	if l := view.Limits["max_executions"]; l.From != "plan" || view.Revision != 3 {
		t.Errorf("cleared, max_executions is %+v at revision %d", l, view.Revision)
	}
}

func TestAFeatureIsSwitchedForOneWorkspace(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	i.must("workspaces", "assign", "ws", "--plan", "pro")
	for word, want := range map[string]string{"true": "true", "on": "true", "false": "false", "off": "false"} {
		text := i.must("workspaces", "override", "ws", "--feature", "sso="+word, "--reason", "a pilot")
		if !hasLine(text, "features.sso", want, "a pilot") {
			t.Errorf("%s prints:\n%s", word, text)
		}
	}
	var set []api.OverrideView
	i.mustJSON(&set, "workspaces", "override", "ws", "--feature", "sso=true", "--reason", "a pilot")
	if len(set) != 1 || set[0].Kind != "boolean" || !set[0].Unlimited {
		t.Errorf("the list is %+v", set)
	}
	if text := i.must("plans", "show", "pro"); !hasLine(text, "feature sso", "false") || !hasLine(text, "feature emails", "50000 in a quota period") {
		t.Errorf("plans show:\n%s", text)
	}
	var plans []struct {
		Key   string            `json:"key"`
		Kinds map[string]string `json:"kinds"`
	}
	i.mustJSON(&plans, "plans", "list")
	if diff := cmp.Diff(map[string]string{"emails": "flow", "sso": "boolean"}, plans[0].Kinds); diff != "" {
		t.Errorf("kinds of plan %s (-want +got):\n%s", plans[0].Key, diff)
	}
}

func TestOverridesOnTheDefaultPlanAreShownAsSuch(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	i.must("workspaces", "override", "ws", "--limit", "max_executions=1", "--reason", "abuse")
	var view api.WorkspaceView
	i.mustJSON(&view, "workspaces", "show", "ws")
	if view.Subscription != nil || view.Limits["max_executions"].From != "override" || view.Limits["max_storage_mb"].From != "default" {
		t.Errorf("show is %+v", view)
	}
}

func TestOverridesThatMeanNothingAreWrongUsage(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"no value":               {[]string{"--limit", "max_executions", "--reason", "x"}, `--limit "max_executions": must be NAME=VALUE`},
		"an empty value":         {[]string{"--limit", "max_executions=", "--reason", "x"}, `the value is ""; write a whole number from 0, or unlimited`},
		"a negative value":       {[]string{"--limit", "max_executions=-1", "--reason", "x"}, `the value is "-1"`},
		"a value with a plus":    {[]string{"--limit", "max_executions=+5", "--reason", "x"}, `the value is "+5"`},
		"a word":                 {[]string{"--feature", "automations=many", "--reason", "x"}, `--feature "automations=many": the value is "many"`},
		"a limit switched":       {[]string{"--limit", "max_executions=true", "--reason", "x"}, `--limit "max_executions=true": the value is true; write a whole number`},
		"a count switched":       {[]string{"--feature", "automations=on", "--reason", "x"}, "features.automations: is counted, a stock"},
		"a switch counted":       {[]string{"--feature", "sso=1", "--reason", "x"}, "features.sso: is on or off"},
		"no name":                {[]string{"--limit", "=5", "--reason", "x"}, "must be NAME=VALUE"},
		"twice":                  {[]string{"--limit", "max_executions=5", "--limit", "max_executions=6", "--reason", "x"}, "is given twice"},
		"no reason":              {[]string{"--limit", "max_executions=5"}, "reason: is missing"},
		"no such limit":          {[]string{"--limit", "executions=5", "--reason", "x"}, "executions: is no limit; the limits are max_executions,"},
		"no such feature":        {[]string{"--feature", "robots=5", "--reason", "x"}, "features.robots: no plan of the catalog has the feature; there are active_users, automations"},
		"an end of no form":      {[]string{"--limit", "max_executions=5", "--reason", "x", "--until", "soon"}, "--until: \"soon\" is no time"},
		"an end that is past":    {[]string{"--limit", "max_executions=5", "--reason", "x", "--until", "2020-01-01"}, "must be later than now"},
		"a reason for nothing":   {[]string{"--reason", "x"}, "nothing to set"},
		"a workspace of no form": {[]string{"--clear", "x"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			workspace := "ws"
			if name == "a workspace of no form" {
				workspace = "a.b"
			}
			_, _, err := i.run(append([]string{"workspaces", "override", workspace}, test.args...)...)
			if exitCode(err) != exitUsage || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error is %v (status %d), want status 2 and %q in it", err, exitCode(err), test.says)
			}
		})
	}
	if _, _, err := i.run("workspaces", "override", "nobody", "--clear", "max_executions"); exitCode(err) != exitFailed || !strings.Contains(err.Error(), "unknown workspace") {
		t.Errorf("clearing of an unknown workspace: %v", err)
	}
}

func TestInvalidatePrintsTheRevision(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	i.must("workspaces", "assign", "ws", "--plan", "pro")
	if text := i.must("invalidate", "ws"); text != "workspace ws is at revision 2; every instance reads its plan again\n" {
		t.Errorf("it prints %q", text)
	}
	var view map[string]any
	i.mustJSON(&view, "invalidate", "ws")
	if diff := cmp.Diff(map[string]any{"workspace_id": "ws", "revision": 3.0}, view); diff != "" {
		t.Errorf("it prints (-want +got):\n%s", diff)
	}
	i.mustJSON(&view, "invalidate", "nobody")
	if view["revision"] != 0.0 {
		t.Errorf("an unknown workspace is at %v, want 0", view["revision"])
	}
	var told int
	err := schematest.Postgres(t).QueryRow(t.Context(), `SELECT count(*) FROM outbox WHERE body->>'reason' = 'headroom invalidate'`).Scan(&told)
	if err != nil || told != 3 {
		t.Errorf("%d were told, %v, want 3", told, err)
	}
	if _, _, err := i.run("invalidate", "a.b"); exitCode(err) != exitUsage {
		t.Errorf("a workspace of no form: %v", err)
	}
}

func TestShowTellsTheHistoryAndWhatIsPinned(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", catalogFile(t, "rank: 0 ", "rank: 0\n    quota_interval: month #"))
	i.must("workspaces", "assign", "ws", "--plan", "pro")
	i.must("workspaces", "assign", "ws", "--plan", "pro", "--new-period")
	i.must("workspaces", "assign", "ws", "--plan", "free", "--source", "system", "--interval", "year")
	i.must("workspaces", "override", "ws", "--limit", "max_executions=7", "--reason", "less")

	var view api.WorkspaceView
	i.mustJSON(&view, "workspaces", "show", "ws")
	if len(view.Subscriptions) != 3 || view.QuotaInterval != "month" || view.Subscription == nil || view.Subscription.Source != "system" {
		t.Fatalf("show is %+v", view)
	}
	if diff := cmp.Diff(&api.PinnedView{Source: "system", SourceID: "ws", Livemode: true}, view.Pinned); diff != "" {
		t.Errorf("pinned (-want +got):\n%s", diff)
	}
	var kinds []string
	for _, row := range view.Subscriptions {
		kinds = append(kinds, row.Source+" "+row.Kind)
		if row.ID == view.Subscription.ID {
			if diff := cmp.Diff(row.Changes, view.Changes); diff != "" || len(view.Changes) == 0 {
				t.Errorf("the running period's changes are not those of its row:\n%s", diff)
			}
		}
	}
	slices.Sort(kinds)
	if diff := cmp.Diff([]string{"enterprise created", "enterprise cycle", "system created"}, kinds); diff != "" {
		t.Errorf("periods (-want +got):\n%s", diff)
	}
	change := view.Changes[0]
	if change.Field != "limits.max_executions" || change.From != "100" || change.To != "7" || change.At.IsZero() {
		t.Errorf("the first change is %+v", change)
	}
	text := i.must("workspaces", "show", "ws")
	for what, parts := range map[string][]string{
		"the quota interval": {"quota lasts", "a month"}, "the pinned one": {"pinned", "system ws"},
		"a renewal": {"cycle", "enterprise ws"}, "an amendment": {"limits.max_executions", "100", "7", "less"},
	} {
		if !hasLine(text, parts...) {
			t.Errorf("show does not tell %s:\n%s", what, text)
		}
	}
}
