package subscriptions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headroomhq/headroom/schemas"
)

// Catalog is the set of plans on offer. Exactly one is the default, and no two
// share a key, a rank or a Stripe price.
type Catalog struct {
	Plans []Plan
}

// Plan is one plan of a catalog.
type Plan struct {
	// Key names the plan in rows, decisions and on the command line.
	Key string `json:"key"`
	// Default marks the plan of a workspace without a live subscription.
	Default bool `json:"default"`
	// Rank orders the plans: of several live subscriptions the highest wins.
	Rank int32 `json:"rank"`
	// QuotaInterval is QuotaMonthly where a quota lasts a month inside a longer
	// billing period, empty where it lasts as long as the period.
	QuotaInterval string `json:"quota_interval,omitempty"`
	// Limits are all seven; none has a default.
	Limits schemas.Limits `json:"limits"`
	// Features maps a feature to how much of it the plan includes. A feature
	// that is not in the map is not in the plan.
	Features map[string]schemas.Limit `json:"features"`
	// Kinds are the kinds of those features that are not FeatureStock, and of those
	// that the plan names without including them: a boolean feature that is off, and in
	// the default plan every feature that is declared and that no plan has.
	Kinds map[string]FeatureKind `json:"kinds,omitempty"`
	// StripePrices are the ids of the prices that stand for the plan.
	StripePrices []string `json:"stripe_prices"`
}

// QuotaMonthly is the one quota interval there is.
const QuotaMonthly = "month"

// Fault is one thing wrong with a catalog.
type Fault struct {
	// Line and Column count from 1; 0 where there is no file.
	Line, Column int
	// Path leads to the value, such as plans.free.limits.max_executions.
	Path string
	// Detail says what is wrong and what to write instead.
	Detail string
}

// CatalogError lists everything wrong with a catalog, in the order of its lines.
type CatalogError struct {
	// File is the name given to ParseCatalog.
	File   string
	Faults []Fault
}

// Error is one line a fault: file, line, column, path and detail.
func (e *CatalogError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, fault := range e.Faults {
		at := e.File
		if at == "" {
			at = "catalog"
		}
		if fault.Line > 0 {
			at += fmt.Sprintf(":%d:%d", fault.Line, fault.Column)
		}
		if fault.Path != "" {
			at += ": " + fault.Path
		}
		lines[i] = at + ": " + fault.Detail
	}
	return strings.Join(lines, "\n")
}

// catalogError is nil when there are no faults.
func catalogError(file string, faults []Fault) error {
	if len(faults) == 0 {
		return nil
	}
	slices.SortStableFunc(faults, func(a, b Fault) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return &CatalogError{File: file, Faults: faults}
}

// validate checks a catalog that did not come from a file.
func (c Catalog) validate() error {
	faults := c.crossFaults(func(string, string) Fault { return Fault{} })
	for _, plan := range c.Plans {
		if !schemas.ValidID(plan.Key) {
			faults = append(faults, Fault{Path: planPath(plan.Key, ""), Detail: "the plan's key " + idRule})
		}
		if plan.Rank < 0 {
			faults = append(faults, Fault{Path: planPath(plan.Key, keyRank), Detail: "must be 0 or more"})
		}
		if !validQuotaInterval(plan.QuotaInterval) {
			faults = append(faults, Fault{Path: planPath(plan.Key, keyQuotaInterval), Detail: quotaIntervalFault(plan.QuotaInterval)})
		}
		faults = append(faults, plan.featureFaults()...)
	}
	return catalogError("", faults)
}

func validQuotaInterval(interval string) bool { return interval == "" || interval == QuotaMonthly }

func quotaIntervalFault(interval string) string {
	return fmt.Sprintf("is %q; write month, or leave it out for a quota that lasts as long as the billing period", interval)
}

// source tells where a value of the catalog stands in its file; the zero Fault
// where there is no file.
type source func(plan, field string) Fault

// crossFaults checks what concerns several plans at once: keys, the default,
// ranks, prices and the kinds of features.
func (c Catalog) crossFaults(where source) []Fault {
	check := crossCheck{
		where:  where,
		keys:   map[string]bool{},
		ranks:  map[int32]string{},
		prices: map[string]string{},

		features: map[string]Plan{},
	}
	for _, plan := range c.Plans {
		check.plan(plan)
	}
	if check.defaultPlan == "" {
		check.fault("", "", noDefault)
	}
	return check.faults
}

const noDefault = "no plan is the default; set default: true on exactly one"

type crossCheck struct {
	where       source
	faults      []Fault
	defaultPlan string
	keys        map[string]bool
	ranks       map[int32]string
	prices      map[string]string
	// features maps a feature to a plan that names it.
	features map[string]Plan
}

func (c *crossCheck) plan(p Plan) {
	if c.keys[p.Key] {
		c.fault(p.Key, "", "is there twice; give each plan its own key")
		return
	}
	c.keys[p.Key] = true
	if p.Default && c.defaultPlan != "" {
		c.fault(p.Key, keyDefault, fmt.Sprintf("plan %s is the default already; keep one", c.defaultPlan))
	} else if p.Default {
		c.defaultPlan = p.Key
	}
	if other, taken := c.ranks[p.Rank]; taken && p.Rank != rankUnset {
		c.fault(p.Key, keyRank, fmt.Sprintf("rank %d is taken by plan %s; give each plan its own", p.Rank, other))
	} else {
		c.ranks[p.Rank] = p.Key
	}
	for _, price := range p.StripePrices {
		if other, taken := c.prices[price]; taken {
			c.fault(p.Key, keyStripePrices+"."+price, fmt.Sprintf("price %s belongs to plan %s already; a price stands for one plan", price, other))
		} else {
			c.prices[price] = p.Key
		}
	}
	c.kinds(p)
}

func (c *crossCheck) fault(plan, field, detail string) {
	fault := c.where(plan, field)
	fault.Detail = detail
	if fault.Path == "" {
		fault.Path = planPath(plan, field)
	}
	c.faults = append(c.faults, fault)
}

func planPath(plan, field string) string {
	path := keyPlans
	for _, part := range []string{plan, field} {
		if part != "" {
			path += "." + part
		}
	}
	return path
}
