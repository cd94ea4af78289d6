package subscriptions

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/headroomhq/headroom/schemas"
)

// The keys of a catalog file.
const (
	keyPlans         = "plans"
	keyDefault       = "default"
	keyRank          = "rank"
	keyLimits        = "limits"
	keyFeatures      = "features"
	keyStripePrices  = "stripe_prices"
	keyQuotaInterval = "quota_interval"
)

const (
	idRule = "must be 1 to 128 letters, digits, _ or -, starting with a letter or digit"
	// rankUnset stands for a rank whose fault was reported.
	rankUnset = -1
)

// ParseCatalog reads a catalog file. The error is a *CatalogError that lists
// every fault of the file with its line, path and what to write instead; only a
// file that is not YAML, too large or empty is reported by its first fault.
//
// A limit is a whole number from 0 or the word unlimited; -1 is accepted for
// unlimited here and nowhere else. Anchors, aliases, merge keys and tags are
// refused: a catalog says what it means where it stands, and cannot be made to
// explode.
func ParseCatalog(name string, body []byte) (Catalog, error) {
	root, fault := readYAML(body)
	if fault != nil {
		return Catalog{}, catalogError(name, []Fault{*fault})
	}
	p := catalogParser{places: map[string]*token.Token{}, named: map[string]bool{}}
	catalog := p.catalog(root)
	p.nameRest(&catalog)
	if len(catalog.Plans) > 0 {
		p.faults = append(p.faults, p.crossFaults(catalog)...)
	}
	if err := catalogError(name, p.faults); err != nil {
		return Catalog{}, err
	}
	return catalog, nil
}

// catalogParser walks the file's tree and collects faults instead of stopping.
type catalogParser struct {
	faults []Fault
	// places are the tokens by path, for faults that are found after the walk.
	places map[string]*token.Token
	// defaultUnread is set when a default was no boolean, so that the absence of
	// a default plan is not reported as well.
	defaultUnread bool
	// declared are the features whose kind the file states, and named those that a plan
	// names.
	declared map[string]FeatureKind
	named    map[string]bool
}

func (p *catalogParser) fault(t *token.Token, path, detail string) {
	p.faults = append(p.faults, *faultAt(t, path, detail))
}

func (p *catalogParser) crossFaults(catalog Catalog) []Fault {
	return slices.DeleteFunc(catalog.crossFaults(p.source), func(f Fault) bool {
		return p.defaultUnread && f.Detail == noDefault
	})
}

// source is where a plan's field stands, or else the plan, or else the plans.
func (p *catalogParser) source(plan, field string) Fault {
	path := planPath(plan, field)
	for {
		if t := p.places[path]; t != nil {
			return *faultAt(t, planPath(plan, strings.SplitN(field, ".", 2)[0]), "")
		}
		cut := strings.LastIndexByte(path, '.')
		if cut < 0 {
			return Fault{}
		}
		path = path[:cut]
	}
}

func (p *catalogParser) catalog(root ast.Node) Catalog {
	var catalog Catalog
	tops, _ := p.entries(entry{value: root}, "a map with the key plans")
	for _, top := range tops {
		if top.key == keyFeatures { // wherever it stands, before the plans
			p.declared = p.kinds(top)
		}
	}
	for _, top := range tops {
		switch top.key {
		case keyPlans:
		case keyFeatures:
			continue
		default:
			p.fault(top.token, top.path, "is not a key of a catalog; allowed are plans and features")
			continue
		}
		plans, _ := p.entries(top, "a map from plan key to plan")
		for _, e := range plans {
			if !schemas.ValidID(e.key) {
				p.fault(e.token, e.path, "the plan's key "+idRule)
			}
			catalog.Plans = append(catalog.Plans, p.plan(e))
		}
	}
	if len(catalog.Plans) == 0 && len(p.faults) == 0 {
		p.fault(root.GetToken(), keyPlans, "has no plans; write the key plans with at least one plan")
	}
	return catalog
}

func (p *catalogParser) plan(e entry) Plan {
	plan := Plan{Key: e.key, Rank: rankUnset, Features: map[string]schemas.Limit{}}
	seen := map[string]bool{}
	fields, ok := p.entries(e, "a map with rank, limits and features")
	if !ok {
		return plan
	}
	for _, field := range fields {
		seen[field.key] = true
		switch field.key {
		case keyDefault:
			plan.Default = p.boolean(field)
		case keyRank:
			plan.Rank = p.rank(field)
		case keyLimits:
			plan.Limits = p.limits(field)
		case keyFeatures:
			p.features(field, &plan)
		case keyStripePrices:
			plan.StripePrices = p.prices(field)
		case keyQuotaInterval:
			plan.QuotaInterval = p.quotaInterval(field)
		default:
			p.fault(field.token, field.path, "is not a key of a plan; allowed are default, rank, limits, features, stripe_prices, quota_interval")
		}
	}
	if !seen[keyRank] {
		p.fault(e.token, e.path, "has no rank; write a whole number, higher for the plan that wins")
	}
	if !seen[keyLimits] {
		p.fault(e.token, e.path, "has no limits; state all of "+strings.Join(schemas.LimitNames, ", "))
	}
	return plan
}

func (p *catalogParser) limits(field entry) schemas.Limits {
	var limits schemas.Limits
	seen := map[string]bool{}
	list, ok := p.entries(field, "a map that states all of "+strings.Join(schemas.LimitNames, ", "))
	if !ok {
		return limits
	}
	for _, e := range list {
		seen[e.key] = true
		limit := limits.Named(e.key)
		if limit == nil {
			p.fault(e.token, e.path, "is not a limit; the limits are "+strings.Join(schemas.LimitNames, ", "))
			continue
		}
		*limit = p.limit(e, maxOf(e.key))
	}
	for _, name := range schemas.LimitNames {
		if !seen[name] {
			p.fault(field.token, field.path+"."+name, "is missing; write a whole number or unlimited")
		}
	}
	return limits
}

func (p *catalogParser) prices(field entry) []string {
	node, ok := p.plain(field.value, field.path)
	if !ok {
		return nil
	}
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		p.fault(field.token, field.path, "must be a list of price ids, such as [price_monthly, price_yearly]")
		return nil
	}
	prices := make([]string, 0, len(list.Values))
	for i, node := range list.Values {
		path := field.path + "[" + strconv.Itoa(i) + "]"
		text, isText := node.(*ast.StringNode)
		if !isText || !validPrice(text.Value) {
			p.fault(node.GetToken(), path, "must be a price id: text without blanks, up to 255 characters")
			continue
		}
		p.places[field.path+"."+text.Value] = node.GetToken()
		prices = append(prices, text.Value)
	}
	return prices
}

func (p *catalogParser) quotaInterval(field entry) string {
	node, ok := p.plain(field.value, field.path)
	if !ok {
		return ""
	}
	if word, ok := node.(*ast.StringNode); ok && word.Value == QuotaMonthly {
		return QuotaMonthly
	}
	p.fault(field.token, field.path, quotaIntervalFault(scalarText(node)))
	return ""
}

func validPrice(id string) bool {
	return id != "" && len(id) <= 255 && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

func (p *catalogParser) boolean(field entry) bool {
	node, ok := p.plain(field.value, field.path)
	if !ok {
		p.defaultUnread = true
		return false
	}
	flag, ok := node.(*ast.BoolNode)
	if !ok {
		p.defaultUnread = true
		p.fault(field.token, field.path, fmt.Sprintf("is %q; write true or false", scalarText(node)))
		return false
	}
	return flag.Value
}
