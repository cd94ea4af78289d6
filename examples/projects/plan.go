package projects

import (
	"context"
	"errors"
	"net/http"

	"github.com/headroomhq/headroom/subscriptions"
)

// changePlan plays the billing side, so that this example needs no Stripe. In production
// no application does this: Stripe's events reach Headroom, which writes the same rows.
func (a *App) changePlan(ctx context.Context, workspace string, r *http.Request) (done, error) {
	key := r.PostFormValue("plan")
	_, err := a.store.Assign(ctx, subscriptions.Assignment{
		WorkspaceID: workspace, PlanKey: key, Source: subscriptions.SourceSystem, Cause: "examples/projects",
	})
	if errors.Is(err, subscriptions.ErrUnknownPlan) {
		return done{}, &wrong{"plan", "is none of the catalog"}
	}
	if err != nil {
		return done{}, err
	}
	// Beside a running Headroom every process is told; this one need not wait for that.
	a.plans.Invalidate(workspace, 0)
	return done{ID: key}, nil
}

// offer is the smallest plan that would have room; nil where no larger plan has.
type offer struct {
	Key    string
	Allows string
}

// enough finds the plan that allows so much of a feature, above the rank of the one
// that the workspace is on.
func (a *App) enough(ctx context.Context, plan, feature string, needed int64) (*offer, error) {
	all, err := a.store.Plans(ctx)
	if err != nil {
		return nil, err
	}
	above := false
	for _, p := range all { // by rank
		if p.Key == plan {
			above = true
			continue
		}
		limit, included := p.Features[feature]
		if feature == featureStorage {
			limit, included = inBytes(p.Limits.MaxStorageMB), true
		}
		if above && included && !limit.Exceeded(needed) {
			return &offer{Key: p.Key, Allows: amount(feature, limit)}, nil
		}
	}
	return nil, nil
}
