package subscriptions

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/headroomhq/headroom/schemas"
)

// FeatureKind says how a feature is measured. A feature is of one kind in the whole catalog.
type FeatureKind string

const (
	// FeatureStock is what a workspace has at a moment, such as projects or seats: it
	// goes down when something is given up, and never by itself.
	FeatureStock FeatureKind = "stock"
	// FeatureFlow is what a workspace uses in a quota period, such as e-mails: each
	// period begins at 0.
	FeatureFlow FeatureKind = "flow"
	// FeatureBoolean is on where a plan includes it, and not counted. Where it is
	// included its limit is schemas.Unlimited.
	FeatureBoolean FeatureKind = "boolean"
)

// Known reports whether the kind is one of the three.
func (k FeatureKind) Known() bool {
	return k == FeatureStock || k == FeatureFlow || k == FeatureBoolean
}

// Text is how a person reads a value of such a feature: true or false where it is
// on or off, else the number, or "unlimited".
func (k FeatureKind) Text(value schemas.Limit) string {
	if k == FeatureBoolean {
		return strconv.FormatBool(switchedOn(value))
	}
	return value.String()
}

// switchedOn reads a limit as that of a boolean feature.
func switchedOn(value schemas.Limit) bool {
	n, bounded := value.Value()
	return !bounded || n > 0
}

// switched is how a boolean feature that is on or off is kept.
func switched(on bool) schemas.Limit {
	if on {
		return schemas.Unlimited
	}
	return schemas.LimitOf(0)
}

// KindOf is the kind of a feature of the snapshot.
func (s Snapshot) KindOf(feature string) FeatureKind { return kindOf(s.Kinds, feature) }

// KindOf is the kind of a feature of the plan.
func (p Plan) KindOf(feature string) FeatureKind { return kindOf(p.Kinds, feature) }

func kindOf(kinds map[string]FeatureKind, feature string) FeatureKind {
	if kind, stated := kinds[feature]; stated {
		return kind
	}
	return FeatureStock
}

// Named lists the features that the plan names, by name: those that it includes, and
// those of which it is known that it does not.
func (p Plan) Named() []string { return featuresNamed(p.Features, p.Kinds) }

func featuresNamed(features map[string]schemas.Limit, kinds map[string]FeatureKind) []string {
	names := slices.AppendSeq(make([]string, 0, len(features)+len(kinds)), maps.Keys(features))
	names = slices.AppendSeq(names, maps.Keys(kinds))
	slices.Sort(names)
	return slices.Compact(names)
}

// Features is every feature that the catalog in force names, with its kind, also
// those that no plan includes. It is empty before the first catalog is applied.
func (s *Store) Features(ctx context.Context) (map[string]FeatureKind, error) {
	return catalogFeatures(ctx, s.pool)
}

// catalogFeatures are the features of all plans in force.
func catalogFeatures(ctx context.Context, q queryer) (map[string]FeatureKind, error) {
	plans, err := latestPlans(ctx, q)
	if err != nil {
		return nil, err
	}
	kinds := map[string]FeatureKind{}
	for _, p := range plans {
		if p.Removed {
			continue
		}
		for _, name := range p.Named() {
			kinds[name] = p.KindOf(name)
		}
	}
	return kinds, nil
}
