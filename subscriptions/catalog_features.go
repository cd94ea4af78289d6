package subscriptions

import (
	"fmt"
	"maps"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/headroomhq/headroom/schemas"
)

const (
	keyKind  = "kind"
	kindRule = "write stock, flow or boolean"
	reserved = "is reserved; set limits.max_storage_mb instead"
)

// kinds reads the kinds that the top of the file declares. One that could not be read
// is empty, and its values are let pass: they may be right.
func (p *catalogParser) kinds(top entry) map[string]FeatureKind {
	list, _ := p.entries(top, "a map from feature to its kind, such as {emails: {kind: flow}}")
	kinds := make(map[string]FeatureKind, len(list))
	for _, e := range list {
		p.featureName(e)
		kinds[e.key] = p.kind(e)
	}
	return kinds
}

func (p *catalogParser) kind(of entry) FeatureKind {
	list, ok := p.entries(of, "a map with the key kind")
	if !ok {
		return ""
	}
	var kind FeatureKind
	stated := false
	for _, e := range list {
		if e.key != keyKind {
			p.fault(e.token, e.path, "is not a key of a feature; the only one is kind")
			continue
		}
		stated = true
		node, ok := p.plain(e.value, e.path)
		if !ok {
			continue
		}
		if kind = FeatureKind(scalarText(node)); !kind.Known() {
			p.fault(e.token, e.path, fmt.Sprintf("is %q; "+kindRule, scalarText(node)))
			kind = ""
		}
	}
	if !stated {
		p.fault(of.token, of.path, "has no kind; "+kindRule)
	}
	return kind
}

func (p *catalogParser) featureName(e entry) {
	switch {
	case !schemas.ValidID(e.key):
		p.fault(e.token, e.path, "the feature's name "+idRule)
	case e.key == schemas.FeatureStorage:
		p.fault(e.token, e.path, reserved)
	}
}

// features reads what a plan includes, and which kinds of it are not stocks.
func (p *catalogParser) features(field entry, plan *Plan) {
	list, _ := p.entries(field, "a map from feature to number, or {}")
	for _, e := range list {
		p.featureName(e)
		kind, declared := p.declared[e.key]
		if !declared {
			kind = FeatureStock
		}
		p.named[e.key] = true
		if kind != FeatureStock && kind != "" {
			plan.setKind(e.key, kind)
		}
		if value, included := p.feature(e, kind); included {
			plan.Features[e.key] = value
		}
	}
}

// feature is a value of the kind; included is false for a feature that is off.
func (p *catalogParser) feature(e entry, kind FeatureKind) (value schemas.Limit, included bool) {
	flag, isFlag := e.value.(*ast.BoolNode)
	switch {
	case isFlag && (kind == FeatureBoolean || kind == ""):
		return schemas.Unlimited, flag.Value
	case isFlag:
		p.fault(e.token, e.path, fmt.Sprintf("is %t, and the feature is counted; write a whole number from 0, or unlimited, or declare features.%s with kind: boolean",
			flag.Value, e.key))
		return schemas.Limit{}, true
	case kind != FeatureBoolean:
		return p.limit(e, maxExact), true
	}
	if node, ok := p.plain(e.value, e.path); ok {
		p.fault(e.token, e.path, fmt.Sprintf("is %q, and the feature is boolean; write true or false", scalarText(node)))
	}
	return schemas.Limit{}, false
}

// nameRest has the default plan name the features that are declared and that no plan
// names. So they are known, and no plan includes them.
func (p *catalogParser) nameRest(catalog *Catalog) {
	at := slices.IndexFunc(catalog.Plans, func(plan Plan) bool { return plan.Default })
	if at < 0 {
		return
	}
	for feature, kind := range p.declared {
		if !p.named[feature] && kind != "" {
			catalog.Plans[at].setKind(feature, kind)
		}
	}
}

func (p *Plan) setKind(feature string, kind FeatureKind) {
	if p.Kinds == nil {
		p.Kinds = map[string]FeatureKind{}
	}
	p.Kinds[feature] = kind
}

// featureFaults checks what a parsed plan cannot have wrong.
func (p Plan) featureFaults() []Fault {
	var faults []Fault
	for _, feature := range p.Named() {
		value, included := p.Features[feature]
		kind := p.KindOf(feature)
		detail := ""
		switch {
		case !schemas.ValidID(feature):
			detail = fmt.Sprintf("the name %q %s", feature, idRule)
		case feature == schemas.FeatureStorage:
			detail = feature + " " + reserved
		case !kind.Known():
			detail = fmt.Sprintf("the kind of %s is %q; "+kindRule, feature, kind)
		case included && kind == FeatureBoolean && !value.IsUnlimited():
			detail = fmt.Sprintf("%s is boolean and has the limit %s; make it unlimited, or leave it out", feature, value)
		default:
			continue
		}
		faults = append(faults, Fault{Path: planPath(p.Key, keyFeatures), Detail: detail})
	}
	return faults
}

// kinds checks that no plan before has another kind of a feature.
func (c *crossCheck) kinds(p Plan) {
	for _, feature := range p.Named() {
		kind := p.KindOf(feature)
		if other, known := c.features[feature]; known && other.KindOf(feature) != kind {
			c.fault(p.Key, keyFeatures+"."+feature, fmt.Sprintf("is of kind %s, and in plan %s %s; a feature is of one kind",
				kind, other.Key, other.KindOf(feature)))
			continue
		}
		c.features[feature] = p
	}
}

// cloneKinds is a map to write to.
func cloneKinds(kinds map[string]FeatureKind) map[string]FeatureKind {
	clone := make(map[string]FeatureKind, len(kinds)+1)
	maps.Copy(clone, kinds)
	return clone
}
