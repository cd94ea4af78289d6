package subscriptions_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

const twoPlans = `# The plans on offer.
plans:
  free:
    default: true
    rank: 0
    limits:
      max_executions: 100
      max_concurrent_executions: 2
      max_tasks_per_execution: 50
      max_execution_duration_minutes: 10
      max_execution_payload_size_mb: 5
      max_storage_mb: 0
      max_executions_per_minute: unlimited
    features: {record_groups: 3, automations: 5}
  pro:
    rank: 10
    stripe_prices: [price_monthly, price_yearly]
    limits:
      max_executions: -1
      max_concurrent_executions: 20
      max_tasks_per_execution: "unlimited"
      max_execution_duration_minutes: 60
      max_execution_payload_size_mb: 50
      max_storage_mb: 1000
      max_executions_per_minute: 600
    features:
      record_groups: unlimited
      automations: 0
`

func parse(t testing.TB, body string) subscriptions.Catalog {
	t.Helper()
	catalog, err := subscriptions.ParseCatalog("plans.yaml", []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return catalog
}

// compareLimits lets cmp look at limits by what they say.
var compareLimits = cmp.Comparer(func(a, b schemas.Limit) bool { return a == b })

func TestParseCatalog(t *testing.T) {
	t.Parallel()
	n := schemas.LimitOf
	want := subscriptions.Catalog{Plans: []subscriptions.Plan{{
		Key: "free", Default: true, Rank: 0,
		Limits: schemas.Limits{
			MaxExecutions: n(100), MaxConcurrentExecutions: n(2), MaxTasksPerExecution: n(50),
			MaxExecutionDurationMinutes: n(10), MaxExecutionPayloadSizeMB: n(5), MaxStorageMB: n(0),
			MaxExecutionsPerMinute: schemas.Unlimited,
		},
		Features: map[string]schemas.Limit{"record_groups": n(3), "automations": n(5)},
	}, {
		Key: "pro", Rank: 10, StripePrices: []string{"price_monthly", "price_yearly"},
		Limits: schemas.Limits{
			MaxExecutions: schemas.Unlimited, MaxConcurrentExecutions: n(20), MaxTasksPerExecution: schemas.Unlimited,
			MaxExecutionDurationMinutes: n(60), MaxExecutionPayloadSizeMB: n(50), MaxStorageMB: n(1000),
			MaxExecutionsPerMinute: n(600),
		},
		Features: map[string]schemas.Limit{"record_groups": schemas.Unlimited, "automations": n(0)},
	}}}
	if diff := cmp.Diff(want, parse(t, twoPlans), compareLimits); diff != "" {
		t.Errorf("catalog (-want +got):\n%s", diff)
	}
}

// TestParseCatalogFault changes one thing in a good file at a time, and expects
// exactly one fault, on the line of the change.
func TestParseCatalogFault(t *testing.T) {
	t.Parallel()
	const quota = "max_executions: 100"
	for name, c := range map[string]struct {
		old, new string
		line     int
		path     string
		detail   string
	}{
		"limit missing":             {"      max_executions: 100\n", "", 6, "plans.free.limits.max_executions", "is missing; write a whole number or unlimited"},
		"limit negative":            {quota, "max_executions: -5", 7, "plans.free.limits.max_executions", "negative"},
		"limit fractional":          {quota, "max_executions: 1.5", 7, "plans.free.limits.max_executions", "not a whole number"},
		"limit a whole float":       {quota, "max_executions: 100.0", 7, "plans.free.limits.max_executions", "not a whole number"},
		"limit too large":           {quota, "max_executions: 9007199254740992", 7, "plans.free.limits.max_executions", "more than the largest allowed, 9007199254740991"},
		"limit beyond 64 bits":      {quota, "max_executions: 99999999999999999999", 7, "plans.free.limits.max_executions", "more than the largest"},
		"megabytes beyond bytes":    {"max_storage_mb: 0", "max_storage_mb: 8589934592", 12, "plans.free.limits.max_storage_mb", "more than the largest allowed, 8589934591"},
		"minutes beyond a century":  {"minutes: 10", "minutes: 52704001", 10, "plans.free.limits.max_execution_duration_minutes", "more than the largest"},
		"limit a word":              {quota, "max_executions: many", 7, "plans.free.limits.max_executions", `is "many", not a number`},
		"unlimited misspelt":        {quota, "max_executions: Unlimited", 7, "plans.free.limits.max_executions", "or unlimited"},
		"limit quoted":              {quota, `max_executions: "100"`, 7, "plans.free.limits.max_executions", "remove the quotes"},
		"minus one quoted":          {quota, `max_executions: "-1"`, 7, "plans.free.limits.max_executions", "remove the quotes"},
		"limit empty":               {quota, "max_executions:", 7, "plans.free.limits.max_executions", "has no value"},
		"limit null":                {quota, "max_executions: null", 7, "plans.free.limits.max_executions", "has no value"},
		"limit boolean":             {quota, "max_executions: true", 7, "plans.free.limits.max_executions", "not a number"},
		"limit infinite":            {quota, "max_executions: .inf", 7, "plans.free.limits.max_executions", "or unlimited"},
		"limit hexadecimal":         {quota, "max_executions: 0x64", 7, "plans.free.limits.max_executions", "decimal digits"},
		"limit octal":               {quota, "max_executions: 0100", 7, "plans.free.limits.max_executions", "leading zero"},
		"limit with underscore":     {quota, "max_executions: 1_000", 7, "plans.free.limits.max_executions", "decimal digits"},
		"limit with exponent":       {quota, "max_executions: 1e3", 7, "plans.free.limits.max_executions", "decimal digits"},
		"limit with plus":           {quota, "max_executions: +5", 7, "plans.free.limits.max_executions", "decimal digits"},
		"limit a list":              {quota, "max_executions: [1]", 7, "plans.free.limits.max_executions", "a list"},
		"limit unknown":             {quota, quota + "\n      max_excutions: 1", 8, "plans.free.limits.max_excutions", "is not a limit; the limits are max_executions, "},
		"limit twice":               {quota, quota + "\n      max_executions: 5", 8, "plans.free.limits.max_executions", "is there twice, first on line 7"},
		"limits a number":           {"  pro:", "  lite: {rank: 5, limits: 3}\n  pro:", 15, "plans.lite.limits", "must be a map"},
		"unknown key of a plan":     {"    rank: 10", "    rank: 10\n    price: 3", 17, "plans.pro.price", "allowed are default, rank, limits, features, stripe_prices"},
		"unknown key of a catalog":  {"plans:", "version: 1\nplans:", 2, "version", "allowed are plans and features"},
		"plan twice":                {"  pro:", "  free:", 15, "plans.free", "is there twice, first on line 3"},
		"plan key invalid":          {"  pro:", "  pro.max:", 15, "plans.pro.max", "the plan's key must be 1 to 128 letters"},
		"plan empty":                {"plans:", "plans:\n  team:", 3, "plans.team", "must be a map with rank, limits and features"},
		"no default":                {"default: true", "default: false", 2, "plans", "no plan is the default"},
		"two defaults":              {"    rank: 10", "    rank: 10\n    default: true", 17, "plans.pro.default", "plan free is the default already"},
		"default a word":            {"default: true", "default: yes", 4, "plans.free.default", "write true or false"},
		"rank missing":              {"    rank: 10\n", "", 15, "plans.pro", "has no rank"},
		"rank twice":                {"rank: 10", "rank: 0", 16, "plans.pro.rank", "rank 0 is taken by plan free"},
		"rank negative":             {"rank: 10", "rank: -1", 16, "plans.pro.rank", "whole number from 0"},
		"rank a word":               {"rank: 10", "rank: high", 16, "plans.pro.rank", "whole number from 0"},
		"feature name invalid":      {"record_groups: 3", "record groups: 3", 14, "plans.free.features.record groups", "the feature's name must be"},
		"feature name reserved":     {"record_groups: 3", "storage_bytes: 3", 14, "plans.free.features.storage_bytes", "max_storage_mb"},
		"feature negative":          {"record_groups: 3", "record_groups: -3", 14, "plans.free.features.record_groups", "negative"},
		"feature boolean":           {"record_groups: 3", "record_groups: true", 14, "plans.free.features.record_groups", "or unlimited"},
		"feature twice":             {"automations: 5", "record_groups: 5", 14, "plans.free.features.record_groups", "is there twice"},
		"features a list":           {"{record_groups: 3, automations: 5}", "[record_groups]", 14, "plans.free.features", "must be a map from feature to number"},
		"price of two plans":        {"    rank: 0", "    rank: 0\n    stripe_prices: [price_yearly]", 18, "plans.pro.stripe_prices", "price price_yearly belongs to plan free"},
		"price twice":               {"price_yearly]", "price_monthly]", 17, "plans.pro.stripe_prices", "belongs to plan pro already"},
		"price empty":               {"price_yearly]", `""]`, 17, "plans.pro.stripe_prices[1]", "must be a price id"},
		"quota interval a year":     {"    rank: 10", "    rank: 10\n    quota_interval: year", 17, "plans.pro.quota_interval", `is "year"; write month, or leave it out`},
		"quota interval a number":   {"    rank: 10", "    rank: 10\n    quota_interval: 1", 17, "plans.pro.quota_interval", `is "1"; write month`},
		"quota interval empty":      {"    rank: 10", "    rank: 10\n    quota_interval:", 17, "plans.pro.quota_interval", "write month"},
		"price a number":            {"price_yearly]", "5]", 17, "plans.pro.stripe_prices[1]", "must be a price id"},
		"prices a word":             {"[price_monthly, price_yearly]", "price_monthly", 17, "plans.pro.stripe_prices", "must be a list"},
		"anchor":                    {"{record_groups: 3, automations: 5}", "&f {record_groups: 3}", 14, "plans.free.features", "anchor, alias or tag"},
		"tag":                       {quota, "max_executions: !!int 100", 7, "plans.free.limits.max_executions", "anchor, alias or tag"},
		"syntax":                    {"rank: 10", "rank: 10: 11", 16, "", "is not valid YAML"},
		"bracket not closed":        {"price_yearly]", "price_yearly", 18, "", "is not valid YAML"},
		"second document":           {"  pro:", "---\nplans:\n  pro:", 16, "", "second YAML document"},
		"not UTF-8":                 {"free", "fr\xffe", 0, "", "not text in UTF-8"},
		"nested without end":        {quota, "max_executions: " + strings.Repeat("[", 5000), 7, "", "nested more than 32 levels"},
		"dashes without end":        {"features: {record_groups: 3, automations: 5}", "features:\n      " + strings.Repeat("- ", 5000), 15, "", "nested more than 32 levels"},
		"larger than any catalog":   {"# The plans on offer.", "# " + strings.Repeat("x", subscriptions.MaxCatalogSize), 0, "", "more than the 262144 allowed"},
		"quoted key twice":          {quota, quota + "\n      \"max_executions\": 5", 8, "plans.free.limits.max_executions", "is there twice, first on line 7"},
		"windows line ends":         {quota + "\n", "max_executions: -5\r\n", 7, "plans.free.limits.max_executions", "negative"},
		"key in the explicit style": {"    rank: 10", "    ? rank\n    : x", 16, "plans.pro.rank", "whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := strings.Replace(twoPlans, c.old, c.new, 1)
			if body == twoPlans {
				t.Fatalf("%q is not in the file", c.old)
			}
			_, err := subscriptions.ParseCatalog("plans.yaml", []byte(body))
			var faults *subscriptions.CatalogError
			if !errors.As(err, &faults) {
				t.Fatalf("error is %v, want a *CatalogError", err)
			}
			if len(faults.Faults) != 1 {
				t.Fatalf("%d faults, want 1:\n%v", len(faults.Faults), err)
			}
			got := faults.Faults[0]
			if got.Line != c.line || got.Path != c.path || !strings.Contains(got.Detail, c.detail) {
				t.Errorf("fault is line %d, path %q: %s\nwant line %d, path %q: …%s…", got.Line, got.Path, got.Detail, c.line, c.path, c.detail)
			}
		})
	}
}

func TestParseCatalogReportsEveryFaultInOneError(t *testing.T) {
	t.Parallel()
	_, err := subscriptions.ParseCatalog("plans.yaml", []byte(`plans:
  free:
    rank: high
    limits:
      max_executions: 1.5
      max_concurrent_executions: 2
      max_tasks_per_execution: -2
      max_task_per_execution: 3
      max_execution_duration_minutes: 10
      max_execution_payload_size_mb: 5
      max_executions_per_minute: unlimited
    features: {automations: ~, automations: 2}
  p/ro: {}
owner: me
`))
	want := strings.TrimSpace(`
plans.yaml:1:1: plans: no plan is the default; set default: true on exactly one
plans.yaml:3:5: plans.free.rank: is "high", not a number in decimal digits; write a whole number from 0, higher for the plan that wins
plans.yaml:4:5: plans.free.limits.max_storage_mb: is missing; write a whole number or unlimited
plans.yaml:5:7: plans.free.limits.max_executions: is 1.5, not a whole number; write a whole number from 0, or unlimited
plans.yaml:7:7: plans.free.limits.max_tasks_per_execution: is -2; a negative number means nothing here; write a whole number from 0, or unlimited
plans.yaml:8:7: plans.free.limits.max_task_per_execution: is not a limit; the limits are max_executions, max_concurrent_executions, max_tasks_per_execution, max_execution_duration_minutes, max_execution_payload_size_mb, max_storage_mb, max_executions_per_minute
plans.yaml:12:16: plans.free.features.automations: has no value; write a whole number from 0, or unlimited
plans.yaml:12:32: plans.free.features.automations: is there twice, first on line 12; keep one
plans.yaml:13:3: plans.p/ro: the plan's key must be 1 to 128 letters, digits, _ or -, starting with a letter or digit
plans.yaml:13:3: plans.p/ro: has no rank; write a whole number, higher for the plan that wins
plans.yaml:13:3: plans.p/ro: has no limits; state all of max_executions, max_concurrent_executions, max_tasks_per_execution, max_execution_duration_minutes, max_execution_payload_size_mb, max_storage_mb, max_executions_per_minute
plans.yaml:14:1: owner: is not a key of a catalog; allowed are plans and features
`)
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func TestParseCatalogRefusesAFileWithoutPlans(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"":                      "f:1:1: is empty",
		"# nothing\n":           "f:1:1: is empty",
		"---\n":                 "f:1:1: is empty",
		"plans:\n":              "f:1:1: plans: must be a map from plan key to plan",
		"plans: {}\n":           "plans: has no plans",
		"{}\n":                  "plans: has no plans",
		"- a\n":                 "must be a map with the key plans",
		"free\n":                "must be a map with the key plans",
		"a: &a [1]\nb: [*a,*a]": "a: is not a key of a catalog",
	} {
		_, err := subscriptions.ParseCatalog("f", []byte(body))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want …%s…", body, err, want)
		}
	}
}

// TestParseCatalogIsQuickOnHostileFiles covers the shapes that make a YAML
// reader explode or crawl.
func TestParseCatalogIsQuickOnHostileFiles(t *testing.T) {
	t.Parallel()
	laughs := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	for name, body := range map[string]string{
		"aliases of aliases": laughs,
		"open brackets":      strings.Repeat("[", subscriptions.MaxCatalogSize),
		"open braces":        strings.Repeat("{a: ", subscriptions.MaxCatalogSize/4),
		"dashes":             strings.Repeat("- ", subscriptions.MaxCatalogSize/2),
		"question marks":     strings.Repeat("? ", subscriptions.MaxCatalogSize/2),
		"a gigabyte's start": strings.Repeat("plans: {}\n", 1<<20),
	} {
		began := time.Now()
		if _, err := subscriptions.ParseCatalog(name, []byte(body)); err == nil {
			t.Errorf("%s: no error", name)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
	}
}

func FuzzParseCatalog(f *testing.F) {
	f.Add([]byte(twoPlans))
	f.Add([]byte("plans: {a: {rank: 1, limits: {max_executions: -1}}}"))
	f.Add([]byte("plans: &x {a: *x, <<: *x}"))
	f.Add([]byte("? [a]\n: - b\n  - !!c d"))
	f.Fuzz(func(t *testing.T, body []byte) {
		catalog, err := subscriptions.ParseCatalog("f", body)
		var faults *subscriptions.CatalogError
		if err != nil && (!errors.As(err, &faults) || len(faults.Faults) == 0) {
			t.Fatalf("error %v is no list of faults", err)
		}
		if err != nil {
			return
		}
		defaults := 0
		for _, plan := range catalog.Plans {
			if plan.Default {
				defaults++
			}
			if !schemas.ValidID(plan.Key) || plan.Rank < 0 {
				t.Fatalf("plan %q of rank %d was accepted", plan.Key, plan.Rank)
			}
		}
		if defaults != 1 {
			t.Fatalf("%d defaults were accepted", defaults)
		}
	})
}
