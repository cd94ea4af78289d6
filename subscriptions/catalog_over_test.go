package subscriptions_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// recorded is a usage that the test wrote down.
type recorded struct {
	of map[subscriptions.Counter]int64
	// features maps a feature, of the kind it was written down for, to who uses how much.
	features map[counted]map[string]int64
	fails    error
}

func (r recorded) UsageOf(_ context.Context, counters []subscriptions.Counter) (map[subscriptions.Counter]int64, error) {
	used := map[subscriptions.Counter]int64{}
	for _, c := range counters {
		if n, known := r.of[c]; known {
			used[c] = n
		}
	}
	return used, r.fails
}

func (r recorded) UsageIn(_ context.Context, epoch string) (map[string]int64, error) {
	used := map[string]int64{}
	for c, n := range r.of {
		if c.UsageEpoch == epoch {
			used[c.WorkspaceID] = n
		}
	}
	return used, r.fails
}

type counted struct {
	feature string
	kind    subscriptions.FeatureKind
}

func (r recorded) FeatureUsage(_ context.Context, feature string, kind subscriptions.FeatureKind) (map[string]int64, error) {
	return r.features[counted{feature, kind}], r.fails
}

func TestADiffTellsWhomItWouldPutOverTheQuota(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s, "max_executions: -1", "max_executions: 1000")
	used := map[subscriptions.Counter]int64{}
	for name, n := range map[string]int64{
		"under": 499, "at": 500, "over": 501, "far-over": 1000, "over-already": 1001, "overridden": 700, "lapsed": 700, "elsewhere": 700,
	} {
		row := assign(t, s, subscriptions.Assignment{WorkspaceID: name})
		used[subscriptions.Counter{WorkspaceID: name, UsageEpoch: row.UsageEpoch}] = n
	}
	override(t, s, subscriptions.OverrideChange{WorkspaceID: "overridden", Set: limits{"max_executions": schemas.LimitOf(5000)}})
	override(t, s, subscriptions.OverrideChange{WorkspaceID: "lapsed", Set: limits{"max_storage_mb": schemas.LimitOf(5000)}})
	assign(t, s, subscriptions.Assignment{WorkspaceID: "elsewhere", PlanKey: "free"})

	epoch := subscriptions.DefaultEpoch(subscriptions.CalendarMonth(now(t, pool)).Start)
	for name, n := range map[string]int64{"unknown": 60, "unknown-under": 49, "unknown-over-already": 101, "over": 60, "own": 60} {
		used[subscriptions.Counter{WorkspaceID: name, UsageEpoch: epoch}] = n
	}
	used[subscriptions.Counter{WorkspaceID: "last-month", UsageEpoch: "default.2020-01"}] = 60
	override(t, s, subscriptions.OverrideChange{WorkspaceID: "own", Set: limits{"max_executions": schemas.LimitOf(70)}})

	for name, test := range map[string]struct {
		changes []string
		want    map[string][]subscriptions.OverLimit
	}{
		"both quotas lowered": {
			[]string{"max_executions: -1", "max_executions: 500", "max_executions: 100", "max_executions: 50"},
			map[string][]subscriptions.OverLimit{
				// Elsewhere is in a period of free, with the usage it had on pro, and was over before.
				"free": {{Limit: "max_executions", When: subscriptions.OverAtOnce, Workspaces: 1}},
				"pro":  {{Limit: "max_executions", When: subscriptions.OverToRunning, Workspaces: 3}},
			},
		},
		"raised":  {[]string{"max_executions: -1", "max_executions: 2000", "max_executions: 100", "max_executions: 150"}, map[string][]subscriptions.OverLimit{"free": {}, "pro": {}}},
		"removed": {[]string{"max_executions: -1", "max_executions: unlimited"}, map[string][]subscriptions.OverLimit{"free": {}, "pro": {}}},
		"another limit": {
			[]string{"max_executions: -1", "max_executions: 1000", "max_storage_mb: 1000", "max_storage_mb: 1"},
			map[string][]subscriptions.OverLimit{"free": {}, "pro": {}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			diff, err := s.DiffCatalog(t.Context(), parse(t, edited(t, test.changes...)), recorded{of: used})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]subscriptions.OverLimit{}
			for _, change := range diff.Changes {
				got[change.Key] = change.OverLimit
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("over limit by plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADiffCountsForTheDefaultPlanThatIsToCome(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s, "max_executions: -1", "max_executions: 20")
	epoch := subscriptions.DefaultEpoch(subscriptions.CalendarMonth(now(t, pool)).Start)
	used := recorded{of: map[subscriptions.Counter]int64{{WorkspaceID: "a", UsageEpoch: epoch}: 30}}
	other := strings.Replace(edited(t, "max_executions: -1", "max_executions: 20", "    default: true\n", ""), "    rank: 10\n", "    rank: 10\n    default: true\n", 1)
	diff, err := s.DiffCatalog(t.Context(), parse(t, other), used)
	if err != nil {
		t.Fatal(err)
	}
	want := []subscriptions.OverLimit{{Limit: "max_executions", When: subscriptions.OverAtOnce, Workspaces: 1}}
	if d := cmp.Diff(want, diff.Changes[1].OverLimit); d != "" || len(diff.Changes[0].OverLimit) != 0 {
		t.Errorf("over limit on pro (-want +got):\n%s\nand on free %+v", d, diff.Changes[0].OverLimit)
	}
}

func TestADiffWithoutUsageSaysSo(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	apply(t, s)
	lower := parse(t, edited(t, "max_executions: -1", "max_executions: 1"))
	diff, err := s.DiffCatalog(t.Context(), lower, nil)
	if err != nil || diff.Changes[1].OverLimit != nil {
		t.Errorf("without a usage: %+v, %v", diff.Changes[1], err)
	}
	away := errors.New("the ledger is away")
	if _, err := s.DiffCatalog(t.Context(), lower, recorded{fails: away}); !errors.Is(err, away) {
		t.Errorf("with a usage that cannot be read: %v", err)
	}
}
