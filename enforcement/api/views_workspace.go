package api

import (
	"math"

	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// featureField is how overrides and over_limit name a feature.
const featureField = "features."

// viewOf shows a plan reading and the row it came from, which is nil on the
// default plan.
func viewOf(plan subscriptions.PlanInfo, row *SubscriptionRow) WorkspaceView {
	view := WorkspaceView{
		WorkspaceID: plan.WorkspaceID, Revision: plan.Revision,
		PlanKey: plan.Snapshot.PlanKey, PlanRevision: plan.Snapshot.PlanRevision,
		PeriodStart: plan.Period.Start, PeriodEnd: plan.Period.End, Subscription: row,
		QuotaInterval: plan.Snapshot.QuotaInterval,
		Limits:        map[string]LimitView{}, Features: map[string]FeatureView{}, OverLimit: []OverLimitView{},
		Overrides: []OverrideView{}, Changes: []ChangeView{}, Subscriptions: []SubscriptionView{},
	}
	for _, name := range schemas.LimitNames {
		limit := plan.Snapshot.Limits.Named(name)
		view.Limits[name] = LimitView{Value: limit.Pointer(), Unlimited: limit.IsUnlimited(), From: sourceOf(plan, name)}
	}
	return view
}

func sourceOf(plan subscriptions.PlanInfo, field string) string {
	switch {
	case plan.Snapshot.IsOverridden(field):
		return FromOverride
	case plan.SubscriptionID == "":
		return FromDefault
	default:
		return FromPlan
	}
}

// addFeatures shows what is used of each feature, and as storage what is used of that.
func (v *WorkspaceView) addFeatures(plan subscriptions.PlanInfo, features map[string]usage.Feature) {
	for name, f := range features {
		if name == schemas.FeatureStorage {
			v.Usage.StorageMB = float64(f.Used) / schemas.BytesPerMegabyte
			continue
		}
		shown := FeatureView{
			Kind: string(f.Kind), Used: f.Used, Limit: f.Limit.Pointer(), Unlimited: f.Limit.IsUnlimited(), Remaining: remaining(f.Limit, f.Used),
			Locked: f.Locked, Included: f.Included, From: sourceOf(plan, featureField+name), ResetsAt: f.ResetsAt,
		}
		v.Features[name] = shown
	}
}

func remaining(limit schemas.Limit, used int64) *int64 {
	n, bounded := limit.Value()
	if !bounded {
		return nil
	}
	left := max(n-used, 0)
	return &left
}

// findOverLimit lists what of the usage is over a limit: the limits in their order,
// then the features by name.
func (v *WorkspaceView) findOverLimit(features map[string]usage.Feature) {
	note := func(name string, used int64, limit schemas.Limit) {
		if value, bounded := limit.Value(); bounded && used > value {
			v.OverLimit = append(v.OverLimit, OverLimitView{Limit: name, Used: used, Value: value})
		}
	}
	of := func(name string) schemas.Limit { return schemas.LimitFrom(v.Limits[name].Value) }
	note(schemas.LimitExecutions, v.Usage.Executions, of(schemas.LimitExecutions))
	note(schemas.LimitConcurrentExecutions, v.Usage.Concurrent, of(schemas.LimitConcurrentExecutions))
	note(schemas.LimitStorageMB, wholeMegabytes(features[schemas.FeatureStorage].Used), of(schemas.LimitStorageMB))
	for _, name := range sortedNames(v.Features) {
		if f := v.Features[name]; f.Kind != string(subscriptions.FeatureBoolean) {
			note(featureField+name, f.Used, features[name].Limit)
		}
	}
}

// wholeMegabytes counts a part of one as a whole.
func wholeMegabytes(bytes int64) int64 {
	return int64(math.Ceil(float64(bytes) / schemas.BytesPerMegabyte))
}
