package usage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// terms are what one feature of one workspace is measured against, from one reading
// of its plan.
type terms struct {
	workspace, feature string
	plan               subscriptions.PlanInfo
	kind               subscriptions.FeatureKind
	included           bool
	// limit is in the feature's own unit; 0 for a feature that is not in the plan.
	limit schemas.Limit
	// unknown is that no plan of the catalog has the feature, where that can be told.
	unknown bool
}

// termsOf reads the plan. An error is ErrUnavailable, or that the workspace has no
// plan at all.
func (c *Counters) termsOf(ctx context.Context, workspace, feature string) (terms, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.LookupTimeout)
	defer cancel()
	plan, err := c.options.Plans.Lookup(ctx, workspace, c.options.Now())
	if errors.Is(err, subscriptions.ErrNotEntitled) {
		return terms{}, fmt.Errorf("plan of workspace %s: %w", workspace, err)
	}
	if err != nil {
		return terms{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	t := termsIn(plan, workspace, feature)
	c.complete(ctx, &t)
	return t, nil
}

func termsIn(plan subscriptions.PlanInfo, workspace, feature string) terms {
	t := terms{workspace: workspace, feature: feature, plan: plan, kind: plan.Snapshot.KindOf(feature)}
	if feature == schemas.FeatureStorage {
		t.kind, t.included, t.limit = subscriptions.FeatureStock, true, plan.Snapshot.Limits.StorageBytes()
		return t
	}
	t.limit, t.included = plan.Snapshot.Features[feature]
	return t
}

// epoch names the counter: periods of one usage epoch share a flow's.
func (t terms) epoch() string {
	if t.kind == subscriptions.FeatureFlow {
		return t.plan.UsageEpoch
	}
	return ""
}

// periodStart is nil for a stock.
func (t terms) periodStart() *time.Time {
	if t.kind != subscriptions.FeatureFlow {
		return nil
	}
	return &t.plan.Period.Start
}

func (t terms) resetsAt() *time.Time {
	if t.kind != subscriptions.FeatureFlow {
		return nil
	}
	end := t.plan.Period.End
	return &end
}

// counted reports whether any quantity can be allowed.
func (t terms) counted() bool { return t.included && t.kind != subscriptions.FeatureBoolean }

// room is the highest count at which so much more fits: negative where it never does.
// It is computed by subtraction, which can't overflow.
func (t terms) room(quantity int64) int64 {
	if !t.counted() {
		return -1
	}
	if n, bounded := t.limit.Value(); bounded {
		return n - quantity
	}
	return math.MaxInt64 - quantity
}

// defaultRevision is the plan revision that must be the newest default one: any will do
// for a workspace with a subscription.
func (t terms) defaultRevision() int64 {
	if t.plan.SubscriptionID != "" {
		return math.MaxInt64
	}
	return t.plan.Snapshot.PlanRevision
}

func (t terms) balance(used int64) Balance {
	return Balance{Used: used, Limit: t.limit, ResetsAt: t.resetsAt()}
}

// finding is what the database said about a change that was not made.
type finding struct {
	used int64
	// locked is whether the change's resource is.
	locked bool
}

// refusal is why the change can't be made at such a count.
func (t terms) refusal(change Change, f finding) error {
	limit, bounded := t.limit.Value()
	switch {
	case !t.counted():
		return t.violation()
	case f.locked:
		return t.lockedError(change.ResourceID, f.used)
	case !bounded:
		return &InvalidArgument{"quantity", fmt.Sprintf("is more than can be counted: %d are used, and a counter ends at %d", f.used, int64(math.MaxInt64))}
	default:
		return &QuotaExceeded{
			WorkspaceID: t.workspace, Feature: t.feature, PlanKey: t.plan.Snapshot.PlanKey,
			Used: f.used, Limit: limit, Requested: change.Quantity, ResetsAt: t.resetsAt(),
		}
	}
}

func (t terms) lockedError(resource string, used int64) *ResourceLocked {
	limit, _ := t.limit.Value()
	return &ResourceLocked{
		WorkspaceID: t.workspace, Feature: t.feature, ResourceID: resource, PlanKey: t.plan.Snapshot.PlanKey,
		Used: used, Limit: limit,
	}
}

// violation is why the feature is not counted on this plan.
func (t terms) violation() *PolicyViolation {
	return &PolicyViolation{
		WorkspaceID: t.workspace, Feature: t.feature, PlanKey: t.plan.Snapshot.PlanKey,
		Unknown: t.unknown, Uncounted: !t.unknown && t.kind == subscriptions.FeatureBoolean,
	}
}

// complete adds what only the catalog tells of a feature that is not in the plan.
func (c *Counters) complete(ctx context.Context, t *terms) {
	if t.included || t.feature == "" {
		return
	}
	if known, ok := c.features(ctx); ok {
		kind, found := known[t.feature]
		t.unknown = !found
		if found {
			t.kind = kind
		}
	}
}

// features are those of the catalog, if it can be read: a refusal is as right without it,
// and only explained less well.
func (c *Counters) features(ctx context.Context) (map[string]subscriptions.FeatureKind, bool) {
	if c.options.Catalog == nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.LookupTimeout)
	defer cancel()
	known, err := c.options.Catalog.Features(ctx)
	if err != nil {
		c.options.Log.Warn("catalog not read, a wrong name is not told from a missing feature", "error", err)
		return nil, false
	}
	return known, true
}
