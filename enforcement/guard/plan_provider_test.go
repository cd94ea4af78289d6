package guard_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

var (
	start = time.Date(2025, 5, 1, 0, 0, 0, 0, time.UTC)
	end   = time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
)

// knows is a plan cache and a catalog.
type knows struct {
	info     subscriptions.PlanInfo
	err      error
	kinds    map[string]subscriptions.FeatureKind
	kindsErr error
	readings int
}

func (k *knows) Lookup(_ context.Context, _ string, at time.Time) (subscriptions.PlanInfo, error) {
	if !at.Equal(start.Add(time.Hour)) {
		return subscriptions.PlanInfo{}, fmt.Errorf("asked for %s", at)
	}
	return k.info, k.err
}

func (k *knows) Features(context.Context) (map[string]subscriptions.FeatureKind, error) {
	k.readings++
	return k.kinds, k.kindsErr
}

func pro() *knows {
	five := schemas.LimitOf(5)
	return &knows{
		info: subscriptions.PlanInfo{
			WorkspaceID: "ws", Revision: 7, SubscriptionID: "sub", Period: subscriptions.Period{Start: start, End: end}, ReadAt: start, Exact: true,
			Snapshot: subscriptions.Snapshot{
				PlanKey: "pro", PlanRevision: 3,
				Limits: schemas.Limits{MaxExecutions: schemas.LimitOf(100), MaxStorageMB: schemas.LimitOf(2)},
				Features: map[string]schemas.Limit{
					"projects": five, "mails": five, "sso": schemas.LimitOf(1), "seats": schemas.Unlimited, "nothing": schemas.LimitOf(0), "seats_per_team": five,
				},
				Kinds:     map[string]subscriptions.FeatureKind{"mails": subscriptions.FeatureFlow, "sso": subscriptions.FeatureBoolean},
				Overrides: []subscriptions.Overridden{{Field: "features.projects", Plan: &five}},
			},
		},
		kinds: map[string]subscriptions.FeatureKind{"sso": subscriptions.FeatureBoolean, "audit": subscriptions.FeatureBoolean, "domains": subscriptions.FeatureStock},
	}
}

func provider(t testing.TB, k *knows, caps map[string]guard.Caps) *guard.PlanProvider {
	t.Helper()
	p, err := guard.NewPlanProvider(guard.PlanOptions{Plans: k, Catalog: k, Caps: caps, Now: func() time.Time { return start.Add(time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPrivilegesOfAPlan(t *testing.T) {
	t.Parallel()
	base := guard.Resolution{
		Kind: guard.KindLimit, Source: guard.SourcePlan, AsOf: start, PeriodStart: start, PeriodEnd: end,
		PlanKey: "pro", PlanRevision: 3, SubscriptionID: "sub", Metadata: map[string]string{"workspace_revision": "7"},
	}
	with := func(change func(*guard.Resolution)) guard.Resolution {
		r := base
		change(&r)
		return r
	}
	tests := map[string]guard.Resolution{
		"projects": with(func(r *guard.Resolution) { r.Limit, r.Source = schemas.LimitOf(5), guard.SourceOverride }),
		"mails":    with(func(r *guard.Resolution) { r.Limit, r.ResetsAt = schemas.LimitOf(5), &end }),
		"sso":      with(func(r *guard.Resolution) { r.Kind = guard.KindBoolean }),
		"audit":    {Kind: guard.KindBoolean, PlanKey: "pro"},
		"seats":    with(func(r *guard.Resolution) { r.Limit = schemas.Unlimited }),
		"nothing":  base,
		schemas.LimitExecutions: with(func(r *guard.Resolution) {
			r.Limit, r.ResetsAt = schemas.LimitOf(100), &end
		}),
		schemas.LimitStorageMB: with(func(r *guard.Resolution) { r.Limit = schemas.LimitOf(2) }),
		schemas.FeatureStorage: with(func(r *guard.Resolution) { r.Limit = schemas.LimitOf(2 << 20) }),
		schemas.LimitTasks:     base,
	}
	for privilege, want := range tests {
		t.Run(privilege, func(t *testing.T) {
			t.Parallel()
			got, err := provider(t, pro(), nil).Resolve(t.Context(), "ws", privilege)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b schemas.Limit) bool { return a == b })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestHowAPlanIsKnown(t *testing.T) {
	t.Parallel()
	k := pro()
	k.info.Exact, k.info.SubscriptionID, k.info.Snapshot.Limits.MaxStorageMB = false, "", schemas.LimitOf(math.MaxInt64)
	p := provider(t, k, nil)
	got, err := p.Resolve(t.Context(), "ws", "mails")
	if err != nil || !got.Stale || !got.AsOf.Equal(start) || got.Source != guard.SourceDefault {
		t.Errorf("a plan from before an outage gives %+v, %v; want it stale, as of its reading, and the default", got, err)
	}
	if got, err = p.Resolve(t.Context(), "ws", schemas.FeatureStorage); err != nil || got.Limit != schemas.LimitOf(math.MaxInt64) {
		t.Errorf("the largest storage gives %s, %v; want no overflow", got.Limit, err)
	}
}

func TestWhatAPlanDoesNotGrant(t *testing.T) {
	t.Parallel()
	errAway := errors.New("away")
	tests := map[string]struct {
		privilege string
		change    func(*knows)
		want      func(error) bool
	}{
		"in no plan":                        {"projetcs", nil, is[*guard.UnknownPrivilege]},
		"in another plan":                   {"domains", nil, is[*guard.NotEntitled]},
		"not known which, catalog away":     {"domains", func(k *knows) { k.kindsErr = errAway }, is[*guard.NotEntitled]},
		"a workspace that is refused":       {"projects", func(k *knows) { k.err = subscriptions.ErrNotEntitled }, is[*guard.NotEntitled]},
		"no catalog yet":                    {"projects", func(k *knows) { k.err = fmt.Errorf("x: %w", subscriptions.ErrNoDefaultPlan) }, is[*guard.NotEntitled]},
		"a plan that cannot be read":        {"projects", func(k *knows) { k.err = errAway }, func(err error) bool { return errors.Is(err, errAway) }},
		"a cap that the plan does not have": {"domains_capped", func(k *knows) { k.info.Snapshot.Features["domains_capped"] = schemas.LimitOf(1) }, is[*guard.NotEntitled]},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := pro()
			if tc.change != nil {
				tc.change(k)
			}
			got, err := provider(t, k, map[string]guard.Caps{"domains_capped": {Subject: "none"}}).Resolve(t.Context(), "ws", tc.privilege)
			if !tc.want(err) || got.Limit != (schemas.Limit{}) {
				t.Errorf("got %+v, %v (%T)", got, err, err)
			}
		})
	}
}

func TestCapsAreFeaturesOfTheSamePlan(t *testing.T) {
	t.Parallel()
	p := provider(t, pro(), map[string]guard.Caps{"seats": {Subject: "seats_per_team", Resource: "nothing"}})
	got, err := p.Resolve(t.Context(), "ws", "seats")
	if err != nil || got.PerSubject == nil || *got.PerSubject != schemas.LimitOf(5) || got.PerResource == nil || *got.PerResource != schemas.LimitOf(0) {
		t.Errorf("got %+v, %v; want 5 per subject and 0 per resource", got, err)
	}
}

func TestTheCatalogIsReadOnceInAWhile(t *testing.T) {
	t.Parallel()
	k, now := pro(), start.Add(time.Hour)
	var elapsed time.Duration
	p, err := guard.NewPlanProvider(guard.PlanOptions{Plans: anytime{k}, Catalog: k, CatalogTTL: time.Second, Now: func() time.Time { return now.Add(elapsed) }})
	if err != nil {
		t.Fatal(err)
	}
	asks := func(readings int, want func(error) bool) {
		t.Helper()
		if _, err := p.Resolve(t.Context(), "ws", "domains"); !want(err) || k.readings != readings {
			t.Errorf("after %s: %v and %d readings, want %d", elapsed, err, k.readings, readings)
		}
	}
	asks(1, is[*guard.NotEntitled])
	asks(1, is[*guard.NotEntitled])
	elapsed, k.kinds = time.Second, nil
	asks(2, is[*guard.UnknownPrivilege])
	// What was known holds while it cannot be read.
	elapsed, k.kinds = 2*time.Second, map[string]subscriptions.FeatureKind{"domains": subscriptions.FeatureStock}
	asks(3, is[*guard.NotEntitled])
	elapsed, k.kinds, k.kindsErr = time.Minute, nil, errors.New("away")
	asks(4, is[*guard.NotEntitled])
	asks(4, is[*guard.NotEntitled])
	if _, err := p.Resolve(t.Context(), "ws", "projects"); err != nil || k.readings != 4 {
		t.Errorf("a feature of the plan: %v and %d readings, want none more", err, k.readings)
	}
}

// anytime is a cache that answers for each instant.
type anytime struct{ *knows }

func (a anytime) Lookup(context.Context, string, time.Time) (subscriptions.PlanInfo, error) {
	return a.info, nil
}

func TestAPlanProviderNeedsPlansAndCatalog(t *testing.T) {
	t.Parallel()
	for _, o := range []guard.PlanOptions{{}, {Plans: pro()}, {Catalog: pro()}} {
		if _, err := guard.NewPlanProvider(o); err == nil {
			t.Errorf("%+v makes a provider", o)
		}
	}
}
