package subscriptions

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
)

// Counter names a quota counter: a workspace's, in the periods of one usage epoch.
type Counter struct {
	WorkspaceID string
	UsageEpoch  string
}

// Usage tells what was counted, as far as that is recorded.
type Usage interface {
	// UsageOf is each counter's count of executions; one that is not in the result counted none.
	UsageOf(ctx context.Context, counters []Counter) (map[Counter]int64, error)
	// UsageIn is the count of executions of every workspace that has one in the epoch.
	UsageIn(ctx context.Context, epoch string) (map[string]int64, error)
	// FeatureUsage is what every workspace uses of a feature of that kind now, a flow in
	// its running period.
	FeatureUsage(ctx context.Context, feature string, kind FeatureKind) (map[string]int64, error)
}

// When a workspace would be over a limit.
const (
	// OverAtOnce is with the apply: the workspace is on the default plan.
	OverAtOnce = "at_once"
	// OverToRunning is with an apply to running periods. Without that, the limit
	// counts from the next period on, which begins with nothing used.
	OverToRunning = "to_running"
	// OverNextPeriod is with an apply to running periods, or else when the next period
	// begins: what there is of a stock, and what is stored, goes on.
	OverNextPeriod = "next_period"
)

// OverLimit is how many workspaces a catalog would put over a limit of a plan:
// more is used than it allows, and not more than is allowed now.
type OverLimit struct {
	// Limit is a limit's name, or "features." and a feature's name.
	Limit string `json:"limit"`
	// When is OverAtOnce, OverToRunning or OverNextPeriod.
	When       string `json:"when"`
	Workspaces int64  `json:"workspaces"`
}

// countOverLimit fills in whom the changes would put over the execution quota, over what
// they may store and over what they may have of features: what the database knows the
// use of.
func (s *Store) countOverLimit(ctx context.Context, d *Diff, c comparison) error {
	now, err := databaseNow(ctx, s.pool)
	if err != nil {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	running, err := s.overToRunning(ctx, d.Changes, c)
	if err != nil {
		return err
	}
	for i := range d.Changes {
		change := &d.Changes[i]
		change.OverLimit = []OverLimit{}
		if n := running[change.Key]; n > 0 {
			change.OverLimit = append(change.OverLimit, OverLimit{schemas.LimitExecutions, OverToRunning, n})
		}
		if change.Kind == PlanUnchanged || !c.isNextDefault(change.Key) {
			continue
		}
		n, err := s.overOnDefault(ctx, c, now)
		if err != nil {
			return err
		}
		if n > 0 {
			change.OverLimit = append(change.OverLimit, OverLimit{schemas.LimitExecutions, OverAtOnce, n})
		}
	}
	return s.countFeaturesOver(ctx, d, c)
}

// comparison is a catalog beside what is in force.
type comparison struct {
	latest  []PlanRevision
	catalog Catalog
	usage   Usage
}

func (c comparison) isNextDefault(key string) bool {
	return slices.ContainsFunc(c.catalog.Plans, func(p Plan) bool { return p.Default && p.Key == key })
}

// quota is what the catalog gives a plan to start; it is nothing to be over of
// where the catalog has no such plan.
func (c comparison) quota(key string) schemas.Limit {
	for _, p := range c.catalog.Plans {
		if p.Key == key {
			return p.Limits.MaxExecutions
		}
	}
	return schemas.Unlimited
}

// quotaOfRow is the execution quota of a running period.
type quotaOfRow struct {
	Workspace, Epoch, Plan string
	Quota                  *int64
}

// notOverridden leaves out the workspaces whose value of the field is not their plan's.
const notOverridden = `NOT EXISTS (SELECT FROM plan_overrides o WHERE o.workspace_id = w.id
	AND o.field = @field AND (o.expires_at IS NULL OR o.expires_at > now()))`

// overToRunning counts by plan.
func (s *Store) overToRunning(ctx context.Context, changes []PlanChange, c comparison) (map[string]int64, error) {
	var keys []string
	for _, change := range changes {
		if change.Kind != PlanUnchanged && !c.quota(change.Key).IsUnlimited() {
			keys = append(keys, change.Key)
		}
	}
	rows, err := s.pool.Query(ctx, `SELECT w.id, s.usage_epoch, s.plan_key, limit_value(s.snapshot, 'max_executions')
		FROM subscriptions s JOIN workspaces w ON w.active_subscription_id = s.id
		WHERE s.closed_at IS NULL AND s.period_end > now() AND s.plan_key = ANY(@keys) AND `+notOverridden, pgx.NamedArgs{"keys": keys, "field": schemas.LimitExecutions})
	if err != nil {
		return nil, fmt.Errorf("read running periods: %w", err)
	}
	running, err := pgx.CollectRows(rows, pgx.RowToStructByPos[quotaOfRow])
	if err != nil {
		return nil, fmt.Errorf("read running periods: %w", err)
	}
	counters := make([]Counter, len(running))
	for i, r := range running {
		counters[i] = Counter{WorkspaceID: r.Workspace, UsageEpoch: r.Epoch}
	}
	used, err := c.usage.UsageOf(ctx, counters)
	if err != nil {
		return nil, err
	}
	over := map[string]int64{}
	for i, r := range running {
		if n := used[counters[i]]; c.quota(r.Plan).Exceeded(n) && !schemas.LimitFrom(r.Quota).Exceeded(n) {
			over[r.Plan]++
		}
	}
	return over, nil
}

// overOnDefault counts the workspaces on the default plan, those included that the
// database knows by their executions alone.
func (s *Store) overOnDefault(ctx context.Context, c comparison, now time.Time) (int64, error) {
	before, after := schemas.Unlimited, schemas.Unlimited
	for _, p := range c.latest {
		if p.Default {
			before = p.Limits.MaxExecutions
		}
	}
	for _, p := range c.catalog.Plans {
		if p.Default {
			after = p.Limits.MaxExecutions
		}
	}
	used, err := c.usage.UsageIn(ctx, DefaultEpoch(CalendarMonth(now).Start))
	if err != nil {
		return 0, err
	}
	over := []string{}
	for workspace, n := range used {
		if after.Exceeded(n) && !before.Exceeded(n) {
			over = append(over, workspace)
		}
	}
	rows, err := s.pool.Query(ctx, `SELECT count(*) FROM unnest(@workspaces::text[]) AS w (id)
		WHERE `+notOverridden+` AND NOT EXISTS (
			SELECT FROM workspaces known JOIN subscriptions s ON s.id = known.active_subscription_id
			WHERE known.id = w.id AND s.closed_at IS NULL AND (s.period_end > now() OR s."interval" IS NOT NULL))`,
		pgx.NamedArgs{"workspaces": over, "field": schemas.LimitExecutions})
	if err != nil {
		return 0, fmt.Errorf("read workspaces on the default plan: %w", err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	if err != nil {
		return 0, fmt.Errorf("read workspaces on the default plan: %w", err)
	}
	return n, nil
}
