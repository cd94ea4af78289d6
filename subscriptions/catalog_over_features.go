package subscriptions

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
)

// measured is what is counted beside the executions: a feature, or what is stored.
type measured struct {
	feature string
	kind    FeatureKind
}

// storage is counted in bytes, and its limit is one of the seven.
var storage = measured{feature: schemas.FeatureStorage, kind: FeatureStock}

// field is the limit as overrides name it.
func (m measured) field() string {
	if m == storage {
		return schemas.LimitStorageMB
	}
	return keyFeatures + "." + m.feature
}

// when is how a lower limit reaches a running period. What there is of a stock does not
// go away with the period.
func (m measured) when() string {
	if m.kind == FeatureFlow {
		return OverToRunning
	}
	return OverNextPeriod
}

// limit is what a plan allows, in the unit that is counted: nothing of a feature that it
// does not include.
func (m measured) limit(p Plan) schemas.Limit {
	if m == storage {
		return inBytes(p.Limits.MaxStorageMB)
	}
	return p.Features[m.feature]
}

func inBytes(megabytes schemas.Limit) schemas.Limit {
	n, bounded := megabytes.Value()
	if !bounded {
		return schemas.Unlimited
	}
	return schemas.LimitOf(n * schemas.BytesPerMegabyte)
}

// measured lists what is counted and named by a plan that changes: storage, then the
// features by name.
func (c comparison) measured(changes []PlanChange) []measured {
	kinds := map[string]FeatureKind{}
	named := map[string]bool{}
	note := func(p Plan) {
		for _, feature := range p.Named() {
			kinds[feature] = p.KindOf(feature)
			named[feature] = named[feature] || changing(changes, p.Key)
		}
	}
	for _, p := range c.latest {
		if !p.Removed {
			note(p.Plan)
		}
	}
	for _, p := range c.catalog.Plans {
		note(p) // the catalog's kind is the one to come
	}
	list := []measured{storage}
	for _, feature := range slices.Sorted(maps.Keys(named)) {
		if named[feature] && kinds[feature] != FeatureBoolean {
			list = append(list, measured{feature, kinds[feature]})
		}
	}
	return list
}

// changing reports whether a plan stays in the catalog, with other terms.
func changing(changes []PlanChange, key string) bool {
	return slices.ContainsFunc(changes, func(c PlanChange) bool {
		return c.Key == key && (c.Kind == PlanChanged || c.Kind == PlanCreated)
	})
}

// allowance is a limit of the default plan before and after, and of each plan after. The
// plans are those that change, where they have such a limit.
type allowance struct {
	before      schemas.Limit
	defaultPlan string
	after       map[string]schemas.Limit
}

func (c comparison) allowance(m measured, changes []PlanChange) allowance {
	a := allowance{before: schemas.Unlimited, after: map[string]schemas.Limit{}}
	for _, p := range c.latest {
		if p.Default {
			a.before = m.limit(p.Plan)
		}
	}
	for _, p := range c.catalog.Plans {
		if p.Default {
			a.defaultPlan = p.Key
		}
		if limit := m.limit(p); changing(changes, p.Key) && !limit.IsUnlimited() {
			a.after[p.Key] = limit
		}
	}
	return a
}

// countFeaturesOver fills in whom the changes would put over what they may store, or have
// of a feature.
func (s *Store) countFeaturesOver(ctx context.Context, d *Diff, c comparison) error {
	for _, m := range c.measured(d.Changes) {
		allowed := c.allowance(m, d.Changes)
		if len(allowed.after) == 0 {
			continue
		}
		used, err := c.usage.FeatureUsage(ctx, m.feature, m.kind)
		if err != nil {
			return err
		}
		over, err := s.overMeasured(ctx, m, allowed, used)
		if err != nil {
			return err
		}
		for i := range d.Changes {
			change := &d.Changes[i]
			for _, when := range []string{m.when(), OverAtOnce} {
				if n := over[overKey{change.Key, when}]; n > 0 {
					change.OverLimit = append(change.OverLimit, OverLimit{m.field(), when, n})
				}
			}
		}
	}
	return nil
}

type overKey struct{ plan, when string }

// holding is what a workspace is on that uses something.
type holding struct {
	Workspace string
	// Plan is nil on the default plan, Storage and Feature are the running period's.
	Plan    *string
	Storage *int64
	Feature *schemas.Limit
}

// before is what the running period allows.
func (h holding) before(m measured) schemas.Limit {
	switch {
	case m == storage:
		return inBytes(schemas.LimitFrom(h.Storage))
	case h.Feature == nil:
		return schemas.LimitOf(0)
	default:
		return *h.Feature
	}
}

// overMeasured counts who would be over and is not.
func (s *Store) overMeasured(ctx context.Context, m measured, allowed allowance, used map[string]int64) (map[overKey]int64, error) {
	exceeded := func(n int64) bool {
		for _, limit := range allowed.after {
			if limit.Exceeded(n) {
				return true
			}
		}
		return false
	}
	candidates := []string{}
	for workspace, n := range used {
		if exceeded(n) {
			candidates = append(candidates, workspace)
		}
	}
	rows, err := s.pool.Query(ctx, `
		SELECT w.id, s.plan_key, limit_value(s.snapshot, 'max_storage_mb'), s.snapshot->'features'->@feature
		FROM unnest(@workspaces::text[]) AS w (id)
		LEFT JOIN workspaces known ON known.id = w.id
		LEFT JOIN subscriptions s ON s.id = known.active_subscription_id
			AND s.closed_at IS NULL AND (s.period_end > now() OR s."interval" IS NOT NULL)
		WHERE `+notOverridden, pgx.NamedArgs{"workspaces": candidates, "feature": m.feature, "field": m.field()})
	if err != nil {
		return nil, fmt.Errorf("read who uses %s: %w", m.feature, err)
	}
	holdings, err := pgx.CollectRows(rows, pgx.RowToStructByPos[holding])
	if err != nil {
		return nil, fmt.Errorf("read who uses %s: %w", m.feature, err)
	}
	over := map[overKey]int64{}
	for _, h := range holdings {
		key, before := overKey{allowed.defaultPlan, OverAtOnce}, allowed.before
		if h.Plan != nil {
			key, before = overKey{*h.Plan, m.when()}, h.before(m)
		}
		after, bounded := allowed.after[key.plan]
		if n := used[h.Workspace]; bounded && after.Exceeded(n) && !before.Exceeded(n) {
			over[key]++
		}
	}
	return over, nil
}
