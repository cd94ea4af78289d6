package usage

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// Feature is what a workspace has of a feature, and may have.
type Feature struct {
	Kind subscriptions.FeatureKind
	Used int64
	// Limit is 0 for a feature that is not Included. For a boolean it says nothing more.
	Limit schemas.Limit
	// Locked is how many resources are beyond the limit.
	Locked   int64
	Included bool
	// ResetsAt is when a flow begins anew, nil for the others.
	ResetsAt *time.Time
}

// counted is a counter of a workspace.
type counted struct {
	Feature, Epoch   string
	Used, Registered int64
}

// tally is how many there are of a feature, or in a workspace.
type tally struct {
	Of string
	N  int64
}

// Features tells of every feature of the plan, of storage, of what is used
// though the plan does not include it, and of all others that the catalog knows.
func (c *Counters) Features(ctx context.Context, plan subscriptions.PlanInfo) (map[string]Feature, error) {
	rows, err := c.pool.Query(ctx, `SELECT feature_key, usage_epoch, count, registered FROM usage_counters
		WHERE workspace_id = @workspace AND usage_epoch IN ('', @epoch)`,
		pgx.NamedArgs{"workspace": plan.WorkspaceID, "epoch": plan.UsageEpoch})
	if err != nil {
		return nil, fmt.Errorf("read features of workspace %s: %w", plan.WorkspaceID, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[counted])
	if err != nil {
		return nil, fmt.Errorf("read features of workspace %s: %w", plan.WorkspaceID, err)
	}
	all := make(map[string]terms)
	name := func(feature string) { all[feature] = termsIn(plan, plan.WorkspaceID, feature) }
	name(schemas.FeatureStorage)
	for feature := range plan.Snapshot.Features {
		name(feature)
	}
	known, _ := c.features(ctx)
	for feature := range known {
		name(feature)
	}
	for _, f := range found {
		name(f.Feature)
	}
	for feature, t := range all {
		if kind, ok := known[feature]; ok && !t.included {
			t.kind = kind
			all[feature] = t
		}
	}
	return c.describe(ctx, all, found)
}

func (c *Counters) describe(ctx context.Context, all map[string]terms, found []counted) (map[string]Feature, error) {
	features := make(map[string]Feature, len(all))
	for name, t := range all {
		features[name] = Feature{Kind: t.kind, Limit: t.limit, Included: t.included, ResetsAt: t.resetsAt()}
	}
	var over []terms
	var loose []int64
	for _, f := range found {
		t := all[f.Feature]
		if t.epoch() != f.Epoch {
			continue // of another kind, which the feature was once
		}
		feature := features[f.Feature]
		feature.Used = f.Used
		features[f.Feature] = feature
		if f.Registered > 0 && t.limit.Exceeded(f.Used) {
			over, loose = append(over, t), append(loose, f.Used-f.Registered)
		}
	}
	locked, err := c.lockedOf(ctx, over, loose)
	for name, n := range locked {
		feature := features[name]
		feature.Locked = n
		features[name] = feature
	}
	return features, err
}

// lockedOf counts the locked resources of features of one workspace that are over
// their limit.
func (c *Counters) lockedOf(ctx context.Context, over []terms, loose []int64) (map[string]int64, error) {
	locked := make(map[string]int64, len(over))
	if len(over) == 0 {
		return locked, nil
	}
	rows, err := c.pool.Query(ctx, `
		SELECT feature_key, count(*) FROM (
			SELECT r.feature_key, a.limit_value, a.loose + sum(r.quantity) OVER (
				PARTITION BY r.feature_key ORDER BY r.keep_rank, r.created_at, r.resource_id) AS through
			FROM unnest(@features::text[], @limits::bigint[], @loose::bigint[]) AS a (feature_key, limit_value, loose)
			JOIN usage_resources r ON r.workspace_id = @workspace AND r.feature_key = a.feature_key) AS ordered
		WHERE through > limit_value GROUP BY feature_key`,
		pgx.NamedArgs{
			"workspace": over[0].workspace, "loose": loose,
			"features": column(over, func(t terms) string { return t.feature }),
			"limits":   column(over, func(t terms) *int64 { return t.limit.Pointer() }),
		})
	if err != nil {
		return nil, fmt.Errorf("count locked resources of workspace %s: %w", over[0].workspace, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[tally])
	if err != nil {
		return nil, fmt.Errorf("count locked resources of workspace %s: %w", over[0].workspace, err)
	}
	for _, f := range found {
		locked[f.Of] = f.N
	}
	return locked, nil
}

// FeatureUsage is what each workspace uses of a feature of that kind now: for a flow in
// its running period. One that is not in the result uses none. It reads all of the
// table, for a person who waits.
func (c *Counters) FeatureUsage(ctx context.Context, feature string, kind subscriptions.FeatureKind) (map[string]int64, error) {
	rows, err := c.pool.Query(ctx, `
		SELECT c.workspace_id, c.count FROM usage_counters c
		LEFT JOIN workspaces w ON w.id = c.workspace_id
		LEFT JOIN subscriptions s ON s.id = w.active_subscription_id AND s.closed_at IS NULL
		WHERE c.feature_key = @feature AND c.count > 0
			AND c.usage_epoch = CASE WHEN @flow THEN coalesce(s.usage_epoch, @default_epoch) ELSE '' END`,
		pgx.NamedArgs{
			"feature": feature, "flow": kind == subscriptions.FeatureFlow,
			"default_epoch": subscriptions.DefaultEpoch(subscriptions.CalendarMonth(c.options.Now()).Start),
		})
	if err != nil {
		return nil, fmt.Errorf("read usage of feature %s: %w", feature, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[tally])
	if err != nil {
		return nil, fmt.Errorf("read usage of feature %s: %w", feature, err)
	}
	used := make(map[string]int64, len(found))
	for _, f := range found {
		used[f.Of] = f.N
	}
	return used, nil
}
