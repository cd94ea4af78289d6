package subscriptions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// Overridden is a value of a snapshot that the workspace has instead of its
// plan's. It carries what to go back to, so that a snapshot tells by itself what
// holds after an override has expired.
type Overridden struct {
	// Field is a limit's name, or "features." and a feature's name.
	Field string `json:"field"`
	// Plan is the plan's value, nil for a feature that is not in the plan.
	Plan *schemas.Limit `json:"plan"`
	// Until is when that holds again, nil for never.
	Until *time.Time `json:"until,omitempty"`
	// Kind is that of a feature that the plan does not name, empty for a stock.
	Kind FeatureKind `json:"kind,omitempty"`
}

// IsOverridden reports whether the value of the field is the workspace's own.
func (s Snapshot) IsOverridden(field string) bool {
	return slices.ContainsFunc(s.Overrides, func(o Overridden) bool { return o.Field == field })
}

// with is the plan's terms with these overrides and no others.
func (s Snapshot) with(overrides []Override) Snapshot {
	s = s.without(func(Overridden) bool { return true })
	if len(overrides) == 0 {
		return s
	}
	s.Features, s.Kinds = cloneFeatures(s.Features), cloneKinds(s.Kinds)
	s.Overrides = make([]Overridden, 0, len(overrides))
	for _, o := range overrides {
		own := Overridden{Field: o.Field, Plan: s.value(o.Field), Until: o.ExpiresAt}
		if feature, ok := featureOf(o.Field); ok && own.Plan == nil && o.Kind != FeatureStock && o.Kind != "" {
			if _, named := s.Kinds[feature]; !named {
				own.Kind = o.Kind
				s.Kinds[feature] = o.Kind
			}
		}
		s.Overrides = append(s.Overrides, own)
		s.setValue(o.Field, &o.Value)
	}
	return s.normal()
}

// normal has no map of kinds where there are none, as what JSON gives back.
func (s Snapshot) normal() Snapshot {
	if len(s.Kinds) == 0 {
		s.Kinds = nil
	}
	return s
}

// at is the snapshot without the overrides that have expired by then.
func (s Snapshot) at(at time.Time) Snapshot {
	return s.without(func(o Overridden) bool { return o.Until != nil && !at.Before(*o.Until) })
}

// validUntil is when the next override expires, zero if none does.
func (s Snapshot) validUntil() time.Time {
	var next time.Time
	for _, o := range s.Overrides {
		if o.Until != nil && (next.IsZero() || o.Until.Before(next)) {
			next = *o.Until
		}
	}
	return next.UTC()
}

// without puts the plan's values back. It leaves the maps of features and kinds alone,
// which others share.
func (s Snapshot) without(drop func(Overridden) bool) Snapshot {
	if !slices.ContainsFunc(s.Overrides, drop) {
		return s
	}
	s.Features, s.Kinds = cloneFeatures(s.Features), cloneKinds(s.Kinds)
	var kept []Overridden
	for _, o := range s.Overrides {
		if !drop(o) {
			kept = append(kept, o)
			continue
		}
		s.setValue(o.Field, o.Plan)
		if feature, ok := featureOf(o.Field); ok && o.Kind != "" {
			delete(s.Kinds, feature)
		}
	}
	s.Overrides = kept
	return s.normal()
}

func cloneFeatures(features map[string]schemas.Limit) map[string]schemas.Limit {
	clone := make(map[string]schemas.Limit, len(features)+1)
	maps.Copy(clone, features)
	return clone
}

// value is nil for a feature that is not included.
func (s Snapshot) value(field string) *schemas.Limit {
	feature, ok := featureOf(field)
	if !ok {
		limit := *s.Limits.Named(field)
		return &limit
	}
	if limit, included := s.Features[feature]; included {
		return &limit
	}
	return nil
}

func (s Snapshot) valueText(field string) string {
	value := s.value(field)
	if value == nil {
		value = &schemas.Limit{} // a feature that is off
	}
	if feature, ok := featureOf(field); ok {
		return s.KindOf(feature).Text(*value)
	}
	return value.String()
}

func (s *Snapshot) setValue(field string, limit *schemas.Limit) {
	feature, ok := featureOf(field)
	switch {
	case !ok:
		*s.Limits.Named(field) = *limit
	case limit == nil:
		delete(s.Features, feature)
	case s.KindOf(feature) == FeatureBoolean && !switchedOn(*limit):
		delete(s.Features, feature)
	case s.KindOf(feature) == FeatureBoolean:
		s.Features[feature] = schemas.Unlimited
	default:
		s.Features[feature] = *limit
	}
}

// featureOf is the feature that a field names; ok is false for a limit.
func featureOf(field string) (feature string, ok bool) {
	return strings.CutPrefix(field, keyFeatures+".")
}

// checkOverrides refuses what could not be put back.
func (s Snapshot) checkOverrides() error {
	for _, o := range s.Overrides {
		if _, feature := featureOf(o.Field); feature {
			continue
		}
		if s.Limits.Named(o.Field) == nil || o.Plan == nil {
			return fmt.Errorf("decode snapshot: the override of %q is no limit's or lacks the plan's value", o.Field)
		}
	}
	return nil
}

// text is the limits, features and overrides, to compare.
func (s Snapshot) text() []text {
	list := termsText(s)
	for _, o := range s.Overrides {
		value := s.valueText(o.Field)
		if o.Until != nil {
			value += " until " + o.Until.UTC().Format(time.RFC3339)
		}
		list = append(list, text{"overrides." + o.Field, value})
	}
	return list
}
