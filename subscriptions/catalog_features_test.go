package subscriptions_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

type kinds = map[string]subscriptions.FeatureKind

// declaring is the file of two plans with the top-level map of features before them,
// and each pair of texts exchanged once.
func declaring(t testing.TB, features string, changes ...string) string {
	t.Helper()
	return edited(t, append([]string{"plans:", "features: " + features + "\nplans:"}, changes...)...)
}

const (
	freeFeatures = "{record_groups: 3, automations: 5}"
	proFeatures  = "      automations: 0"
)

func TestParseCatalogReadsTheKindsOfFeatures(t *testing.T) {
	t.Parallel()
	body := declaring(t, "{emails: {kind: flow}, sso: {kind: boolean}, seats: {kind: stock}, audit: {kind: boolean}}",
		freeFeatures, "{automations: 5, emails: 100, sso: false}",
		proFeatures, proFeatures+"\n      emails: unlimited\n      sso: true\n      seats: 4")
	// Where the map stands does not matter.
	head, rest, _ := strings.Cut(body, "\nplans:")
	for name, body := range map[string]string{"before": body, "after": "plans:" + rest + head + "\n"} {
		got := parse(t, body)
		want := []kinds{
			// Nobody includes audit: the default plan is where that is known.
			{"emails": subscriptions.FeatureFlow, "sso": subscriptions.FeatureBoolean, "audit": subscriptions.FeatureBoolean},
			{"emails": subscriptions.FeatureFlow, "sso": subscriptions.FeatureBoolean},
		}
		if diff := cmp.Diff(want, []kinds{got.Plans[0].Kinds, got.Plans[1].Kinds}); diff != "" {
			t.Errorf("%s: kinds (-want +got):\n%s", name, diff)
		}
		n := schemas.LimitOf
		wantFeatures := []limits{
			{"automations": n(5), "emails": n(100)},
			{"record_groups": schemas.Unlimited, "automations": n(0), "emails": schemas.Unlimited, "sso": schemas.Unlimited, "seats": n(4)},
		}
		if diff := cmp.Diff(wantFeatures, []limits{got.Plans[0].Features, got.Plans[1].Features}, compareLimits); diff != "" {
			t.Errorf("%s: features (-want +got):\n%s", name, diff)
		}
	}
}

func TestParseCatalogFaultOfAKind(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		features string
		changes  []string
		line     int
		path     string
		detail   string
	}{
		"unknown kind":            {"{sso: {kind: bool}}", nil, 2, "features.sso.kind", `is "bool"; write stock, flow or boolean`},
		"kind a number":           {"{sso: {kind: 1}}", nil, 2, "features.sso.kind", "write stock, flow or boolean"},
		"kind missing":            {"{sso: {}}", nil, 2, "features.sso", "has no kind; write stock, flow or boolean"},
		"kind empty":              {"{sso: {kind: }}", nil, 2, "features.sso.kind", "write stock, flow or boolean"},
		"unknown key":             {"{sso: {kind: flow, unit: bytes}}", nil, 2, "features.sso.unit", "the only one is kind"},
		"feature a word":          {"{sso: boolean}", nil, 2, "features.sso", "must be a map with the key kind"},
		"features a list":         {"[sso]", nil, 2, "features", "must be a map from feature to its kind"},
		"features empty":          {"", nil, 2, "features", "must be a map from feature to its kind"},
		"feature twice":           {"{sso: {kind: flow}, sso: {kind: flow}}", nil, 2, "features.sso", "is there twice"},
		"name invalid":            {`{"a.b": {kind: flow}}`, nil, 2, "features.a.b", "the feature's name must be"},
		"name reserved":           {"{storage_bytes: {kind: stock}}", nil, 2, "features.storage_bytes", "max_storage_mb"},
		"an anchor":               {"{sso: &a {kind: flow}}", nil, 2, "features.sso", "anchor, alias or tag"},
		"a tag":                   {"{sso: {kind: !!str flow}}", nil, 2, "features.sso.kind", "anchor, alias or tag"},
		"boolean with a number":   {"{sso: {kind: boolean}}", []string{freeFeatures, "{sso: 1}"}, 15, "plans.free.features.sso", `is "1", and the feature is boolean; write true or false`},
		"boolean unlimited":       {"{sso: {kind: boolean}}", []string{freeFeatures, "{sso: unlimited}"}, 15, "plans.free.features.sso", "write true or false"},
		"boolean with a word":     {"{sso: {kind: boolean}}", []string{freeFeatures, "{sso: yes}"}, 15, "plans.free.features.sso", "write true or false"},
		"boolean without a value": {"{sso: {kind: boolean}}", []string{freeFeatures, "{sso: }"}, 15, "plans.free.features.sso", "write true or false"},
		"flow with a boolean":     {"{emails: {kind: flow}}", []string{freeFeatures, "{emails: true}"}, 15, "plans.free.features.emails", "is true, and the feature is counted; write a whole number from 0, or unlimited, or declare features.emails with kind: boolean"},
		"stock with a boolean":    {"{}", []string{freeFeatures, "{seats: false}"}, 15, "plans.free.features.seats", "is false, and the feature is counted"},
		"flow with a fraction":    {"{emails: {kind: flow}}", []string{freeFeatures, "{emails: 1.5}"}, 15, "plans.free.features.emails", "not a whole number"},
		// The kind alone is at fault: what the plan says may be right.
		"unknown kind of a named feature": {"{sso: {kind: bool}}", []string{freeFeatures, "{sso: true}"}, 2, "features.sso.kind", "write stock, flow or boolean"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := subscriptions.ParseCatalog("plans.yaml", []byte(declaring(t, c.features, c.changes...)))
			var faults *subscriptions.CatalogError
			if !errors.As(err, &faults) || len(faults.Faults) != 1 {
				t.Fatalf("error is %v, want one fault", err)
			}
			got := faults.Faults[0]
			if got.Line != c.line || got.Path != c.path || !strings.Contains(got.Detail, c.detail) {
				t.Errorf("fault is line %d, path %q: %s\nwant line %d, path %q: …%s…", got.Line, got.Path, got.Detail, c.line, c.path, c.detail)
			}
		})
	}
}

func TestACatalogOfNoFileIsHeldToTheSameKinds(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for name, c := range map[string]struct {
		spoil func(plans []subscriptions.Plan)
		says  string
	}{
		"an unknown kind": {func(p []subscriptions.Plan) { p[0].Kinds = kinds{"sso": "bool"} }, `the kind of sso is "bool"; write stock, flow or boolean`},
		"a reserved name": {func(p []subscriptions.Plan) { p[0].Features["storage_bytes"] = schemas.Unlimited }, "storage_bytes is reserved; set limits.max_storage_mb"},
		"a reserved kind": {func(p []subscriptions.Plan) { p[0].Kinds = kinds{"storage_bytes": "flow"} }, "storage_bytes is reserved"},
		"a counted switch": {func(p []subscriptions.Plan) {
			p[0].Features["sso"], p[0].Kinds = schemas.LimitOf(3), kinds{"sso": "boolean"}
		}, "sso is boolean and has the limit 3"},
		"two kinds of one": {func(p []subscriptions.Plan) { p[0].Kinds = kinds{"automations": "flow"} }, "plans.pro.features.automations: is of kind stock, and in plan free flow"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			catalog := parse(t, twoPlans)
			c.spoil(catalog.Plans)
			_, err := s.ApplyCatalog(t.Context(), catalog)
			var faults *subscriptions.CatalogError
			if !errors.As(err, &faults) || len(faults.Faults) != 1 || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error is %v, want …%s…", err, c.says)
			}
		})
	}
}

// measured is the two plans with a feature of each kind, and one that no plan includes.
func measured(t testing.TB, changes ...string) string {
	t.Helper()
	return declaring(t, "{emails: {kind: flow}, sso: {kind: boolean}, audit: {kind: boolean}}", append([]string{
		freeFeatures, "{record_groups: 3, automations: 5, emails: 100, sso: false}",
		proFeatures, proFeatures + "\n      emails: unlimited\n      sso: true",
	}, changes...)...)
}

func applyBody(t testing.TB, s *subscriptions.Store, body string) subscriptions.Applied {
	t.Helper()
	applied, err := s.ApplyCatalog(t.Context(), parse(t, body))
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

func TestKindsAreKeptWithTheRevisionsOfAPlan(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	if known, err := s.Features(t.Context()); err != nil || len(known) != 0 {
		t.Errorf("before the first catalog the features are %v, %v", known, err)
	}
	applyBody(t, s, measured(t))
	want := kinds{"record_groups": "stock", "automations": "stock", "emails": "flow", "sso": "boolean", "audit": "boolean"}
	features := func(want kinds) {
		t.Helper()
		got, err := s.Features(t.Context())
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("features, %v (-want +got):\n%s", err, diff)
		}
	}
	features(want)
	plans, err := s.Plans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parse(t, measured(t)).Plans[0].Kinds, plans[0].Kinds); diff != "" {
		t.Errorf("kinds of free (-want +got):\n%s", diff)
	}
	if again := applyBody(t, s, measured(t)); again.Revision != 1 {
		t.Errorf("the same catalog made revision %d", again.Revision)
	}

	// Only pro has emails now, and their kind is another.
	changed := applyBody(t, s, measured(t, "emails: {kind: flow}", "emails: {kind: stock}", ", emails: 100", ""))
	got := map[string][]subscriptions.FieldChange{}
	for _, c := range changed.Changes {
		got[c.Key] = c.Fields
	}
	wantFields := map[string][]subscriptions.FieldChange{
		"free": {{Field: "features.emails", From: "100"}, {Field: "features.emails.kind", From: "flow"}},
		"pro":  {{Field: "features.emails.kind", From: "flow"}},
	}
	if diff := cmp.Diff(wantFields, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	// A kind that changes is no business of plans that do not name the feature.
	alone := applyBody(t, s, measured(t, "emails: {kind: flow}", "emails: {kind: boolean}", ", emails: 100", "", "emails: unlimited", "emails: true"))
	if free := alone.Changes[0]; free.Kind != subscriptions.PlanUnchanged {
		t.Errorf("free is %+v", free)
	}
	if diff := cmp.Diff([]subscriptions.FieldChange{
		{Field: "features.emails", From: "unlimited", To: "true"}, {Field: "features.emails.kind", To: "boolean"},
	}, alone.Changes[1].Fields); diff != "" {
		t.Errorf("changes of pro (-want +got):\n%s", diff)
	}
	want["emails"] = "boolean"
	features(want)
	revisions, err := s.Plan(t.Context(), "pro")
	if err != nil || len(revisions) != 3 || revisions[2].KindOf("emails") != subscriptions.FeatureFlow || revisions[1].KindOf("emails") != subscriptions.FeatureStock {
		t.Errorf("revisions of pro are %+v, %v", revisions, err)
	}
	// What no plan includes is forgotten with its declaration.
	applyBody(t, s, measured(t, ", audit: {kind: boolean}", ""))
	delete(want, "audit")
	want["emails"] = "flow"
	features(want)
}

func TestAPeriodKeepsTheKindsItWasOpenedWith(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	applyBody(t, s, measured(t))
	row := assign(t, s, subscriptions.Assignment{})
	of := func() kinds { return planInfo(t, s, now(t, pool)).Snapshot.Kinds }
	want := kinds{"emails": "flow", "sso": "boolean"}
	if diff := cmp.Diff(want, of()); diff != "" {
		t.Errorf("kinds of the period (-want +got):\n%s", diff)
	}
	applyBody(t, s, measured(t, "emails: {kind: flow}", "emails: {kind: stock}"))
	if diff := cmp.Diff(want, of()); diff != "" {
		t.Errorf("a later catalog changed the period (-want +got):\n%s", diff)
	}
	if _, err := s.ApplyToRunning(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kinds{"sso": "boolean"}, of()); diff != "" {
		t.Errorf("kinds of the period after an apply to it (-want +got):\n%s", diff)
	}
	for _, h := range history(t, s, "acme") {
		if lines := changeLines(h.Changes); h.ID == row.ID && !contains(lines, "features.emails.kind: flow -> ") {
			t.Errorf("the audit trail is %v", lines)
		}
	}
}

func contains(lines []string, part string) bool {
	return strings.Contains(strings.Join(lines, "\n"), part)
}

func TestASnapshotOfAnUnknownKindIsRefused(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	applyBody(t, s, measured(t))
	row := assign(t, s, subscriptions.Assignment{})
	if _, err := pool.Exec(t.Context(), `UPDATE subscriptions SET snapshot = jsonb_set(snapshot, '{kinds,sso}', '"quorum"') WHERE id = $1`, row.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PlanInfo(t.Context(), "acme", now(t, pool)); err == nil || !strings.Contains(err.Error(), `feature sso is of kind "quorum"`) {
		t.Errorf("error is %v", err)
	}
}

func TestAnOverrideKeepsTheKindOfItsFeature(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	applyBody(t, s, measured(t, ", emails: 100", ""))
	assign(t, s, subscriptions.Assignment{PlanKey: "free"})
	assign(t, s, subscriptions.Assignment{WorkspaceID: "rich"})
	terms := func(workspace string) subscriptions.Snapshot {
		t.Helper()
		info, err := s.PlanInfo(t.Context(), workspace, now(t, pool))
		if err != nil {
			t.Fatal(err)
		}
		return info.Snapshot
	}
	before := terms("acme")

	live := override(t, s, subscriptions.OverrideChange{
		Set: limits{"features.emails": schemas.LimitOf(7), "max_storage_mb": schemas.LimitOf(9)}, Switch: map[string]bool{"features.sso": true, "features.audit": true},
	})
	var shown []string
	for _, o := range live {
		shown = append(shown, fmt.Sprintf("%s %s %s", o.Field, o.Kind, o.Kind.Text(o.Value)))
	}
	if diff := cmp.Diff([]string{"features.audit boolean true", "features.emails flow 7", "features.sso boolean true", "max_storage_mb  9"}, shown); diff != "" {
		t.Errorf("overrides (-want +got):\n%s", diff)
	}
	got := terms("acme")
	if got.KindOf("emails") != subscriptions.FeatureFlow || got.Features["emails"] != schemas.LimitOf(7) || got.Features["sso"] != schemas.Unlimited || got.KindOf("sso") != subscriptions.FeatureBoolean {
		t.Errorf("overridden terms are %+v", got)
	}

	// Off is not included, and the plan's again when it is cleared.
	override(t, s, subscriptions.OverrideChange{WorkspaceID: "rich", Switch: map[string]bool{"features.sso": false}})
	if _, included := terms("rich").Features["sso"]; included || !terms("rich").IsOverridden("features.sso") {
		t.Errorf("switched off, the terms are %+v", terms("rich"))
	}
	if lines := changeLines(history(t, s, "rich")[0].Changes); !contains(lines, "features.sso: true -> false") || !contains(lines, "overrides.features.sso:  -> false") {
		t.Errorf("the audit trail is %v", lines)
	}
	override(t, s, subscriptions.OverrideChange{WorkspaceID: "rich", Clear: []string{"features.sso"}})
	if terms("rich").Features["sso"] != schemas.Unlimited {
		t.Errorf("cleared, the terms are %+v", terms("rich"))
	}

	// The kind follows the catalog also where the plan does not name the feature.
	applyBody(t, s, measured(t, ", emails: 100", "", "emails: {kind: flow}", "emails: {kind: stock}"))
	assign(t, s, subscriptions.Assignment{PlanKey: "free", NewPeriod: true})
	if got := terms("acme"); got.KindOf("emails") != subscriptions.FeatureStock {
		t.Errorf("with the catalog's new kind the terms are %+v", got)
	}
	override(t, s, subscriptions.OverrideChange{Clear: []string{"features.emails", "features.sso", "features.audit", "max_storage_mb"}})
	before.PlanRevision = terms("acme").PlanRevision
	if diff := cmp.Diff(before, terms("acme"), compareLimits); diff != "" {
		t.Errorf("cleared, the terms are not the plan's (-want +got):\n%s", diff)
	}
}

func TestAnOverrideIsMeasuredLikeItsFeature(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	applyBody(t, s, measured(t))
	on := func(field string) map[string]bool { return map[string]bool{field: true} }
	for name, c := range map[string]struct {
		change subscriptions.OverrideChange
		says   string
	}{
		"a number for a switch":   {subscriptions.OverrideChange{Set: limits{"features.sso": schemas.LimitOf(1)}}, "features.sso: is on or off and not counted; write true or false"},
		"unlimited for a switch":  {subscriptions.OverrideChange{Set: limits{"features.sso": schemas.Unlimited}}, "write true or false"},
		"a stock switched":        {subscriptions.OverrideChange{Switch: on("features.automations")}, "features.automations: is counted, a stock; write a number or unlimited"},
		"a flow switched":         {subscriptions.OverrideChange{Switch: on("features.emails")}, "features.emails: is counted, a flow"},
		"a limit switched":        {subscriptions.OverrideChange{Switch: on("max_executions")}, "max_executions: is no feature"},
		"set and switched":        {subscriptions.OverrideChange{Set: limits{"features.sso": schemas.LimitOf(1)}, Switch: on("features.sso")}, "is set and switched at once"},
		"switched and cleared":    {subscriptions.OverrideChange{Switch: on("features.sso"), Clear: []string{"features.sso"}}, "is set and cleared at once"},
		"the reserved name":       {subscriptions.OverrideChange{Set: limits{"features.storage_bytes": schemas.LimitOf(1)}}, "features.storage_bytes: is reserved; override max_storage_mb instead"},
		"a switch nobody knows":   {subscriptions.OverrideChange{Switch: on("features.robots")}, "no plan of the catalog has the feature; there are audit, automations, emails, record_groups, sso"},
		"a switch without reason": {subscriptions.OverrideChange{Switch: on("features.sso"), Reason: " "}, "reason: is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.change.WorkspaceID = "acme"
			if c.change.Reason == "" {
				c.change.Reason = "a test"
			}
			_, err := s.ChangeOverrides(t.Context(), c.change)
			if !errors.Is(err, subscriptions.ErrInvalidOverride) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error is %v, want …%s…", err, c.says)
			}
		})
	}
}
