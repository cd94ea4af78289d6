package subscriptions_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// The two plans with kinds allow this much: free automations 5, emails 100, storage 0;
// pro automations 50, emails unlimited, storage 1000 MB.
func TestADiffTellsWhomItWouldPutOverAFeature(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	base := []string{"automations: 0", "automations: 50", "max_storage_mb: 0", "max_storage_mb: 1"}
	applyBody(t, s, measured(t, base...))
	for _, name := range []string{"paying", "paying-less", "paying-over-already", "own", "lapsed"} {
		assign(t, s, subscriptions.Assignment{WorkspaceID: name})
	}
	assign(t, s, subscriptions.Assignment{WorkspaceID: "on-free", PlanKey: "free"})
	override(t, s, subscriptions.OverrideChange{
		WorkspaceID: "own",
		Set:         limits{"features.automations": schemas.LimitOf(60), "features.emails": schemas.LimitOf(60), "max_storage_mb": schemas.LimitOf(60)},
	})
	override(t, s, subscriptions.OverrideChange{WorkspaceID: "lapsed", Set: limits{"max_executions": schemas.LimitOf(60)}})
	const mb = schemas.BytesPerMegabyte
	used := recorded{features: map[counted]map[string]int64{
		{"automations", subscriptions.FeatureStock}:          {"paying": 40, "paying-less": 30, "paying-over-already": 51, "own": 40, "lapsed": 40, "on-free": 4, "stranger": 4, "stranger-less": 3},
		{"emails", subscriptions.FeatureFlow}:                {"paying": 2000, "own": 2000, "stranger": 90},
		{"emails", subscriptions.FeatureStock}:               {"paying": 7},
		{"record_groups", subscriptions.FeatureStock}:        {"paying": 9, "stranger": 3},
		{schemas.FeatureStorage, subscriptions.FeatureStock}: {"paying": 900 * mb, "paying-less": 500 * mb, "own": 900 * mb, "stranger": mb, "stranger-less": mb - 1},
	}}
	over := func(limit, when string, n int64) subscriptions.OverLimit {
		return subscriptions.OverLimit{Limit: limit, When: when, Workspaces: n}
	}
	for name, test := range map[string]struct {
		changes []string
		want    map[string][]subscriptions.OverLimit
	}{
		"a stock lowered": {
			[]string{"automations: 50", "automations: 30"},
			map[string][]subscriptions.OverLimit{"pro": {over("features.automations", subscriptions.OverNextPeriod, 2)}},
		},
		"a flow lowered": {
			[]string{"emails: unlimited", "emails: 1999"},
			map[string][]subscriptions.OverLimit{"pro": {over("features.emails", subscriptions.OverToRunning, 1)}},
		},
		"a feature taken out": {
			[]string{"\n      emails: unlimited", ""},
			map[string][]subscriptions.OverLimit{"pro": {over("features.emails", subscriptions.OverToRunning, 1)}},
		},
		"storage lowered": {
			[]string{"max_storage_mb: 1000", "max_storage_mb: 500"},
			map[string][]subscriptions.OverLimit{"pro": {over("max_storage_mb", subscriptions.OverNextPeriod, 1)}},
		},
		"the default plan lowered": {
			[]string{"automations: 5,", "automations: 3,", "emails: 100", "emails: 80", "max_storage_mb: 1\n", "max_storage_mb: 0\n"},
			map[string][]subscriptions.OverLimit{"free": {
				over("max_storage_mb", subscriptions.OverAtOnce, 2),
				over("features.automations", subscriptions.OverNextPeriod, 1), over("features.automations", subscriptions.OverAtOnce, 1),
				over("features.emails", subscriptions.OverAtOnce, 1),
			}},
		},
		"a kind changed": {
			// As a stock it is counted by another counter.
			[]string{"emails: {kind: flow}", "emails: {kind: stock}", "emails: unlimited", "emails: 5"},
			map[string][]subscriptions.OverLimit{"pro": {over("features.emails", subscriptions.OverNextPeriod, 1)}},
		},
		"another limit": {[]string{"max_tasks_per_execution: 50", "max_tasks_per_execution: 49"}, map[string][]subscriptions.OverLimit{}},
		"a switch off":  {[]string{"sso: true", "sso: false"}, map[string][]subscriptions.OverLimit{}},
		"all raised": {
			[]string{"automations: 50", "automations: 60", "max_storage_mb: 1000", "max_storage_mb: 2000", "automations: 5,", "automations: 6,"},
			map[string][]subscriptions.OverLimit{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			diff, err := s.DiffCatalog(t.Context(), parse(t, measured(t, append(append([]string{}, base...), test.changes...)...)), used)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]subscriptions.OverLimit{}
			for _, change := range diff.Changes {
				if change.OverLimit == nil {
					t.Errorf("nobody looked who is over a limit of %s", change.Key)
				}
				if len(change.OverLimit) > 0 {
					got[change.Key] = change.OverLimit
				}
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("over limit by plan (-want +got):\n%s", d)
			}
		})
	}
}

func TestADiffCountsFeaturesForTheDefaultPlanThatIsToCome(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	applyBody(t, s, measured(t, "automations: 0", "automations: 2"))
	used := recorded{features: map[counted]map[string]int64{{"automations", subscriptions.FeatureStock}: {"a": 3, "b": 2, "c": 6}}}
	other := measured(t, "automations: 0", "automations: 2", "    default: true\n", "", "    rank: 10\n", "    rank: 10\n    default: true\n")
	diff, err := s.DiffCatalog(t.Context(), parse(t, other), used)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(diff.Changes[1].OverLimit, diff.Changes[0].OverLimit)
	if want := "[{features.automations at_once 1}] []"; got != want {
		t.Errorf("over limit on pro and on free: %s, want %s", got, want)
	}
}
