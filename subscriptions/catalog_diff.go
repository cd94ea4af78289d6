package subscriptions

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/headroomhq/headroom/schemas"
)

// ChangeKind is what an apply does to a plan.
type ChangeKind string

// The kinds of change.
const (
	PlanCreated   ChangeKind = "created"
	PlanChanged   ChangeKind = "changed"
	PlanRemoved   ChangeKind = "removed"
	PlanUnchanged ChangeKind = "unchanged"
)

// FieldChange is one field's value before and after, as text: a number,
// "unlimited", a word or a list with commas; empty where there was or is none.
type FieldChange struct {
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
}

// PlanChange is what an apply does, or would do, to one plan.
type PlanChange struct {
	Key  string     `json:"key"`
	Kind ChangeKind `json:"kind"`
	// From is the newest revision before, 0 for a plan never seen; To is the one
	// that was written, 0 if none was. JSON leaves a 0 out: no revision has it.
	From int64 `json:"from,omitzero"`
	To   int64 `json:"to,omitzero"`
	// Fields are the differences, all fields of a created plan, none of a
	// removed one.
	Fields []FieldChange `json:"fields"`
	// Running is how many open periods are on the plan. They keep the terms they
	// were opened with.
	Running int64 `json:"running"`
	// OverLimit is whom a diff found that the change would put over a limit; nil
	// where nobody looked.
	OverLimit []OverLimit `json:"over_limit,omitzero"`
}

// Diff is what applying a catalog would do.
type Diff struct {
	Changes []PlanChange `json:"changes"`
}

// Empty reports whether applying would write nothing.
func (d Diff) Empty() bool {
	return !slices.ContainsFunc(d.Changes, func(c PlanChange) bool { return c.Kind != PlanUnchanged })
}

// DiffCatalog tells what ApplyCatalog would do now, and by the usage whom that would
// put over a limit; without a usage it does not look. It writes nothing.
func (s *Store) DiffCatalog(ctx context.Context, catalog Catalog, usage Usage) (Diff, error) {
	if err := catalog.validate(); err != nil {
		return Diff{}, err
	}
	latest, err := latestPlans(ctx, s.pool)
	if err != nil {
		return Diff{}, err
	}
	changes := planChanges(latest, catalog)
	if err := countRunning(ctx, s.pool, changes); err != nil {
		return Diff{}, err
	}
	diff := Diff{Changes: changes}
	if usage != nil {
		err = s.countOverLimit(ctx, &diff, comparison{latest: latest, catalog: catalog, usage: usage})
	}
	return diff, err
}

// planChanges compares the newest revisions with a catalog: the catalog's plans
// in its order, then those it no longer has. A plan that was removed before and
// is still absent is not mentioned.
func planChanges(latest []PlanRevision, catalog Catalog) []PlanChange {
	before := make(map[string]PlanRevision, len(latest))
	for _, p := range latest {
		before[p.Key] = p
	}
	changes := make([]PlanChange, 0, len(catalog.Plans))
	for _, plan := range catalog.Plans {
		old, known := before[plan.Key]
		delete(before, plan.Key)
		change := PlanChange{Key: plan.Key, From: old.Revision, Kind: PlanUnchanged}
		switch {
		case !known || old.Removed:
			change.Kind, change.Fields = PlanCreated, planFields(nil, &plan)
		default:
			change.Fields = planFields(&old.Plan, &plan)
			if len(change.Fields) > 0 {
				change.Kind = PlanChanged
			}
		}
		changes = append(changes, change)
	}
	for _, p := range latest {
		if _, gone := before[p.Key]; gone && !p.Removed {
			changes = append(changes, PlanChange{Key: p.Key, From: p.Revision, Kind: PlanRemoved, Fields: []FieldChange{}})
		}
	}
	return changes
}

// planFields lists the fields in which two plans differ; a nil plan has none.
func planFields(from, to *Plan) []FieldChange {
	return diffText(planText(from), planText(to))
}

// text is a field's name and its value as text, in the order to show them.
type text struct{ field, value string }

func planText(p *Plan) []text {
	if p == nil {
		return nil
	}
	prices := slices.Sorted(slices.Values(p.StripePrices))
	list := []text{
		{keyDefault, strconv.FormatBool(p.Default)},
		{keyRank, strconv.FormatInt(int64(p.Rank), 10)},
	}
	if p.QuotaInterval != "" {
		list = append(list, text{keyQuotaInterval, p.QuotaInterval})
	}
	list = append(list, termsText(Snapshot{Limits: p.Limits, Features: p.Features, Kinds: p.Kinds})...)
	return append(list, text{keyStripePrices, strings.Join(prices, ", ")})
}

// termsText is what a plan and a snapshot have in common.
func termsText(s Snapshot) []text {
	var list []text
	for _, name := range schemas.LimitNames {
		list = append(list, text{keyLimits + "." + name, s.Limits.Named(name).String()})
	}
	for _, name := range featuresNamed(s.Features, s.Kinds) {
		field := keyFeatures + "." + name
		value, included := s.Features[name]
		if kind := s.KindOf(name); included || kind == FeatureBoolean {
			list = append(list, text{field, kind.Text(value)})
		}
		if kind, stated := s.Kinds[name]; stated {
			list = append(list, text{field + "." + keyKind, string(kind)})
		}
	}
	return list
}

// diffText lists the fields whose value differs: those of after in its order,
// then those that only before has.
func diffText(before, after []text) []FieldChange {
	old := make(map[string]string, len(before))
	for _, t := range before {
		old[t.field] = t.value
	}
	changes := []FieldChange{}
	for _, t := range after {
		if old[t.field] != t.value {
			changes = append(changes, FieldChange{Field: t.field, From: old[t.field], To: t.value})
		}
		delete(old, t.field)
	}
	for _, t := range before {
		if value, gone := old[t.field]; gone && value != "" {
			changes = append(changes, FieldChange{Field: t.field, From: value})
		}
	}
	return changes
}
