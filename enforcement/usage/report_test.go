package usage_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

func TestFeaturesTellOfEverythingThatIsCountedOrMayBe(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 10, "seats": 10, "emails": 10}),
		plan("small", features{"projects": 2, "emails": -1, "sso": -1, schemas.FeatureStorage: 1}))
	for n := range 3 {
		h.must(t, project(n))
	}
	h.must(t, of("projects", 1))
	h.must(t, of("seats", 2))
	h.must(t, of("emails", 2)) // in the epoch of the default plan
	h.must(t, of(schemas.FeatureStorage, 2<<20))
	elsewhere := of("projects", 7)
	elsewhere.WorkspaceID = "v"
	h.must(t, elsewhere)
	h.assign(t, "w", "small")
	h.must(t, of("emails", 1))
	h.plans.Invalidate("w", 0)
	info, err := h.plans.Lookup(t.Context(), "w", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.Features(t.Context(), info)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]usage.Feature{
		"projects":             {Kind: subscriptions.FeatureStock, Used: 4, Limit: schemas.LimitOf(2), Locked: 2, Included: true},
		"seats":                {Kind: subscriptions.FeatureStock, Used: 2, Limit: schemas.LimitOf(0)},
		"emails":               {Kind: subscriptions.FeatureFlow, Used: 1, Limit: schemas.Unlimited, Included: true, ResetsAt: &info.Period.End},
		"sso":                  {Kind: subscriptions.FeatureBoolean, Limit: schemas.Unlimited, Included: true},
		schemas.FeatureStorage: {Kind: subscriptions.FeatureStock, Used: 2 << 20, Limit: schemas.LimitOf(1 << 20), Included: true},
	}
	if diff := cmp.Diff(want, got, sameLimit); diff != "" {
		t.Errorf("features (-want +got):\n%s", diff)
	}

	for feature, want := range map[string]map[string]int64{
		"projects": {"w": 4, "v": 7}, "emails": {"w": 1}, "nothing": {},
	} {
		used, err := h.FeatureUsage(t.Context(), feature, kinds[feature])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, used); diff != "" {
			t.Errorf("usage of %s (-want +got):\n%s", feature, diff)
		}
	}
}

func TestChecksConsumeNothing(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 3, "emails": -1}))
	h.must(t, of("projects", 2))
	verdicts, err := h.Check(t.Context(), []usage.Change{of("projects", 1), of("projects", 2), of("emails", 9), of("projects", -1), project(1)})
	if err != nil {
		t.Fatal(err)
	}
	refused := make([]bool, len(verdicts))
	for i, v := range verdicts {
		refused[i] = v.Err != nil
	}
	if diff := cmp.Diff([]bool{false, true, false, true, false}, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	if verdicts[0].Used != 2 || *verdicts[0].Remaining() != 1 || verdicts[2].Remaining() != nil {
		t.Errorf("verdicts %+v", verdicts)
	}
	if none, err := h.Check(t.Context(), nil); err != nil || len(none) != 0 {
		t.Errorf("no checks: %v, %v", none, err)
	}
	h.wantUsed(t, "projects", 2)
}
