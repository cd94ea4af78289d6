package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement/api"
)

// good is a request that each route answers, by its line.
var good = map[string]struct {
	request
	status int
	scope  api.Scope
}{
	"admit":         {admission, 201, api.ScopeExecute},
	"progress":      {advance, 200, api.ScopeExecute},
	"complete":      {request{method: "POST", path: "/v1/workspaces/ws_1/executions/ex_1/complete", body: `{"outcome": "succeeded"}`}, 200, api.ScopeExecute},
	"consume":       {consume, 200, api.ScopeExecute},
	"release":       {request{method: "POST", path: "/v1/workspaces/ws_1/features/automations/release", body: `{"quantity": 2}`}, 200, api.ScopeExecute},
	"resources":     {request{method: "GET", path: "/v1/workspaces/ws_1/features/automations/resources?limit=2"}, 200, api.ScopeRead},
	"keep":          {request{method: "PUT", path: "/v1/workspaces/ws_1/features/automations/resources/keep", body: `{"resource_ids": ["a_1"]}`}, 204, api.ScopeAdmin},
	"workspace":     {request{method: "GET", path: "/v1/workspaces/ws_1"}, 200, api.ScopeRead},
	"executions":    {request{method: "GET", path: "/v1/workspaces/ws_1/executions"}, 200, api.ScopeRead},
	"subscriptions": {request{method: "GET", path: "/v1/workspaces/ws_1/subscriptions"}, 200, api.ScopeRead},
	"decisions":     {request{method: "GET", path: "/v1/workspaces/ws_1/decisions?execution=ex_1&limit=5&before=2026-11-30T12:00:00Z"}, 200, api.ScopeRead},
	"check":         {request{method: "POST", path: "/v1/workspaces/ws_1/check", body: `{"checks": [{"feature": "automations"}]}`}, 200, api.ScopeRead},
	"invalidate":    {request{method: "POST", path: "/v1/workspaces/ws_1/invalidate", body: `{"reason": "by hand"}`}, 202, api.ScopeAdmin},
	"invalidate-2":  {request{method: "POST", path: "/api/core/invalidate-plan/ws_1"}, 202, api.ScopeAdmin},
}

// TestEveryRouteAnswersAsDescribed holds each good request and its answer against the
// OpenAPI document.
func TestEveryRouteAnswersAsDescribed(t *testing.T) {
	t.Parallel()
	door, check := newDoor(t, willing()), documentValidator(t)
	for name, g := range good {
		w := g.ask(t, door)
		if w.Code != g.status {
			t.Errorf("%s: status %d, want %d; body %s", name, w.Code, g.status, w.Body)
		}
		if valid, faults := check.ValidateHttpRequestResponse(g.make(t), w.Result()); !valid {
			for _, fault := range faults {
				t.Errorf("%s: %s: %s %v", name, fault.Message, fault.Reason, fault.SchemaValidationErrors)
			}
		}
	}
}

func TestEveryRouteAsksForItsScope(t *testing.T) {
	t.Parallel()
	door := newDoor(t, willing())
	tokens := map[api.Scope]string{api.ScopeRead: readToken, api.ScopeExecute: executeToken, api.ScopeAdmin: adminToken}
	for name, g := range good {
		for scope, token := range tokens {
			q := g.request
			q.token = token
			w := q.ask(t, door)
			if scope == g.scope || scope == api.ScopeAdmin {
				if w.Code != g.status {
					t.Errorf("%s with scope %s: status %d; body %s", name, scope, w.Code, w.Body)
				}
				continue
			}
			if p := told(t, w); slugOf(p) != "insufficient-scope" || p["required_scope"] != string(g.scope) {
				t.Errorf("%s with scope %s: got %v", name, scope, p)
			}
		}
		for _, field := range []string{"", "Bearer", "Bearer ", "Basic " + adminToken, "Bearer " + adminToken + "x", adminToken, "Bearer " + adminToken[1:]} {
			q := g.request
			q.token = "-"
			if field != "" {
				q.header = map[string]string{"Authorization": field}
			}
			if p := told(t, q.ask(t, door)); slugOf(p) != "unauthorized" {
				t.Errorf("%s with Authorization %q: got %v", name, field, p)
			}
		}
	}
}

func TestTheSchemeOfATokenIsReadInAnyCase(t *testing.T) {
	t.Parallel()
	q := good["workspace"].request
	q.token, q.header = "-", map[string]string{"Authorization": "bearer  " + readToken}
	if w := q.ask(t, newDoor(t, willing())); w.Code != http.StatusOK {
		t.Errorf("status %d; body %s", w.Code, w.Body)
	}
}

func TestTwoTokensAreNone(t *testing.T) {
	t.Parallel()
	r := good["workspace"].make(t)
	r.Header.Add("Authorization", "Bearer "+readToken)
	w := recorded(newDoor(t, willing()), r)
	if slugOf(told(t, w)) != "unauthorized" {
		t.Errorf("status %d; body %s", w.Code, w.Body)
	}
}

// fault is what a problem says of a field.
func fault(field, detail string) string { return field + ": " + detail }

func faultsOf(p map[string]any) []string {
	var found []string
	list, _ := p["errors"].([]any)
	for _, each := range list {
		member, _ := each.(map[string]any)
		found = append(found, fault(fmt.Sprint(member["field"]), fmt.Sprint(member["detail"])))
	}
	return found
}

const (
	idRule    = "must be 1 to 128 letters, digits, dashes and underscores, the first a letter or digit"
	countRule = "must be a whole number from 0 to 9007199254740991"
)

// bodies are wrong bodies: of which route, and what is said of them.
var bodies = []struct{ route, body, want string }{
	{"admit", `{}`, fault("execution_id", "is missing")},
	{"admit", `{"execution_id": 5}`, fault("execution_id", "must be a string")},
	{"admit", `{"execution_id": null}`, fault("execution_id", "must be a string")},
	{"admit", `{"execution_id": ""}`, fault("execution_id", idRule)},
	{"admit", `{"execution_id": "-a"}`, fault("execution_id", idRule)},
	{"admit", `{"execution_id": "a.b"}`, fault("execution_id", idRule)},
	{"admit", `{"execution_id": "ä"}`, fault("execution_id", idRule)},
	{"admit", `{"execution_id": "` + strings.Repeat("a", 129) + `"}`, fault("execution_id", idRule)},
	{"admit", `{"execution_id": "a", "execution_id": "b"}`, fault("execution_id", "stands there twice")},
	{"admit", `{"Execution_ID": "a", "execution_id": "a"}`, fault("Execution_ID", "is not a field of this request")},
	{"admit", `{"execution_id": "a", "payload_bytes": "5"}`, fault("payload_bytes", countRule)},
	{"admit", `{"execution_id": "a", "payload_bytes": -1}`, fault("payload_bytes", countRule)},
	{"admit", `{"execution_id": "a", "payload_bytes": 1.5}`, fault("payload_bytes", countRule)},
	{"admit", `{"execution_id": "a", "payload_bytes": 9007199254740992}`, fault("payload_bytes", countRule)},
	{"admit", `{"execution_id": "a", "payload_bytes": 1e400}`, fault("payload_bytes", countRule)},
	{"admit", `{"execution_id": "a", "payload_bytes": 99999999999999999999999999}`, fault("payload_bytes", countRule)},
	{"admit", `[]`, fault("body", "must be an object")},
	{"admit", `null`, fault("body", "must be an object")},
	{"admit", `"x"`, fault("body", "must be an object")},
	{"progress", `{"tasks": true}`, fault("tasks", countRule)},
	{"progress", `{"tasks": -1}`, fault("tasks", countRule)},
	{"progress", `{"payload_bytes": {}}`, fault("payload_bytes", countRule)},
	{"progress", `{"task": 1}`, fault("task", "is not a field of this request")},
	{"complete", `{}`, fault("outcome", "is missing")},
	{"complete", `{"outcome": "done"}`, fault("outcome", "must be one of succeeded, failed, canceled, not_started")},
	{"complete", `{"outcome": ["failed"]}`, fault("outcome", "must be a string")},
	{"complete", `{"outcome": "failed", "tasks": 1e99}`, fault("tasks", countRule)},
	{"complete", `{"outcome": "failed", "x": 1}`, fault("x", "is not a field of this request")},
	{"consume", `{"quantity": "1"}`, fault("quantity", countRule)},
	{"consume", `{"quantity": -1}`, fault("quantity", countRule)},
	{"consume", `{"quantity": 9223372036854775808}`, fault("quantity", countRule)},
	{"consume", `{"resource_id": "a b"}`, fault("resource_id", idRule)},
	{"consume", `{"created_at": "yesterday"}`, fault("created_at", "must be an RFC 3339 time such as 2026-11-30T15:04:05Z")},
	{"consume", `{"amount": 1}`, fault("amount", "is not a field of this request")},
	{"release", `{"quantity": []}`, fault("quantity", countRule)},
	{"release", `{"Quantity": 1}`, fault("Quantity", "is not a field of this request")},
	{"keep", `{}`, fault("resource_ids", "is missing")},
	{"keep", `{"resource_ids": "a"}`, fault("resource_ids", "must be a list")},
	{"keep", `{"resource_ids": ["a", 5]}`, fault("resource_ids[1]", "must be a string")},
	{"keep", `{"resource_ids": ["a", "b c"]}`, fault("resource_ids[1]", idRule)},
	{"check", `{}`, fault("checks", "is missing")},
	{"check", `{"checks": []}`, fault("checks", "must have 1 to 100 elements")},
	{"check", `{"checks": {}}`, fault("checks", "must be a list")},
	{"check", `{"checks": [5]}`, fault("checks[0]", "must be an object")},
	{"check", `{"checks": [{"feature": "a", "feature": "b"}]}`, fault("checks[0].feature", "stands there twice")},
	{"check", `{"checks": [{"feature": "a"}, {"feature": "b", "extra": 1}]}`, fault("checks[1].extra", "is not a field of this request")},
	{"check", `{"checks": [{"execution": "yes"}]}`, fault("checks[0].execution", "must be true or false")},
	{"check", `{"checks": [{"feature": "a", "quantity": 1.5}]}`, fault("checks[0].quantity", countRule)},
	{"invalidate", `{"reason": 5}`, fault("reason", "must be a string")},
	{"invalidate", `{"reason": "` + strings.Repeat("ä", 201) + `"}`, fault("reason", "must have at most 200 characters")},
	{"invalidate", `{"reason": "a\u0000b"}`, fault("reason", "must not hold a NUL")},
	{"invalidate", `{"why": "x"}`, fault("why", "is not a field of this request")},
	{"invalidate-2", `{"why": "x"}`, fault("why", "is not a field of this request")},
}

func TestAWrongBodyIsRefusedByItsField(t *testing.T) {
	t.Parallel()
	door, check := newDoor(t, willing()), documentValidator(t)
	for _, c := range bodies {
		q := good[c.route].request
		q.body = c.body
		p := told(t, q.ask(t, door))
		if diff := cmp.Diff([]string{c.want}, faultsOf(p)); diff != "" || slugOf(p) != "invalid-request" {
			t.Errorf("%s %s: %s (-want +got):\n%s", c.route, c.body, slugOf(p), diff)
		}
		// What stands there twice, and case, JSON Schema cannot see.
		if valid, _ := check.ValidateHttpRequest(q.make(t)); valid && !strings.Contains(c.want, "twice") {
			t.Errorf("%s %s: the document allows it", c.route, c.body)
		}
	}
}

func TestABodyThatCannotBeReadIsMalformed(t *testing.T) {
	t.Parallel()
	door := newDoor(t, willing())
	for name, g := range good {
		if g.method == "GET" {
			continue
		}
		for _, body := range []string{"{", "{}{}", "{} x", "{'a': 1}", "\xff", "{\"a\": \"\xc3\x28\"}", "NaN", "{,}", " "} {
			q := g.request
			q.body = body
			if p := told(t, q.ask(t, door)); slugOf(p) != "malformed-body" || p["status"] != 400.0 {
				t.Errorf("%s %q: got %v", name, body, p)
			}
		}
		for _, header := range []map[string]string{
			{"Content-Type": "application/x-www-form-urlencoded"},
			{"Content-Type": ""},
			{"Content-Type": "application/json; charset=latin1"},
			{"Content-Encoding": "gzip"},
		} {
			q := g.request
			q.body, q.header = "{}", header
			if p := told(t, q.ask(t, door)); slugOf(p) != "unsupported-media-type" {
				t.Errorf("%s %v: got %v", name, header, p)
			}
		}
		q := g.request
		q.body = strings.Repeat(" ", api.MaxBody) + "{}"
		if p := told(t, q.ask(t, door)); slugOf(p) != "body-too-large" {
			t.Errorf("%s: got %v", name, p)
		}
	}
}

func TestAnEmptyBodyIsEnoughWhereNothingIsNeeded(t *testing.T) {
	t.Parallel()
	door := newDoor(t, willing())
	for name, g := range good {
		q := g.request
		q.body = ""
		w := q.ask(t, door)
		switch name {
		case "admit", "complete", "check", "keep":
			if slugOf(told(t, w)) != "malformed-body" {
				t.Errorf("%s: status %d; body %s", name, w.Code, w.Body)
			}
		default:
			if w.Code != g.status {
				t.Errorf("%s: status %d; body %s", name, w.Code, w.Body)
			}
		}
	}
}

func TestAWrongPartOfAPathIsRefusedByItsName(t *testing.T) {
	t.Parallel()
	door := newDoor(t, willing())
	for name, g := range good {
		for _, id := range []string{"a.b", "%20", "a%2Fb", "-a", "%C3%A4", "a%00", strings.Repeat("a", 129), "a*", "%7Ba%7D"} {
			q := g.request
			q.path = strings.Replace(q.path, "ws_1", id, 1)
			if diff := cmp.Diff([]string{fault("workspace_id", idRule)}, faultsOf(told(t, q.ask(t, door)))); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", name, q.path, diff)
			}
		}
	}
	q := good["complete"].request
	q.path = strings.Replace(q.path, "ex_1", "ex%2e1", 1)
	if diff := cmp.Diff([]string{fault("execution_id", idRule)}, faultsOf(told(t, q.ask(t, door)))); diff != "" {
		t.Errorf("execution (-want +got):\n%s", diff)
	}
	q = good["consume"].request
	q.path = strings.Replace(q.path, "automations", "auto+mations", 1)
	if diff := cmp.Diff([]string{fault("feature", idRule)}, faultsOf(told(t, q.ask(t, door)))); diff != "" {
		t.Errorf("feature (-want +got):\n%s", diff)
	}
}

func TestAnIDMayBePercentEncoded(t *testing.T) {
	t.Parallel()
	w := request{method: "GET", path: "/v1/workspaces/%77s_1"}.ask(t, newDoor(t, willing()))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"ws_1"`) {
		t.Errorf("status %d; body %s", w.Code, w.Body)
	}
}

func TestAWrongParameterIsRefusedByItsName(t *testing.T) {
	t.Parallel()
	door := newDoor(t, willing())
	const decisions = "/v1/workspaces/ws_1/decisions"
	for path, want := range map[string]string{
		decisions + "?limit=0":                           fault("limit", "must be a whole number from 1 to 1000"),
		decisions + "?limit=1001":                        fault("limit", "must be a whole number from 1 to 1000"),
		decisions + "?limit=x":                           fault("limit", "must be a whole number from 1 to 1000"),
		decisions + "?limit=":                            fault("limit", "must be a whole number from 1 to 1000"),
		decisions + "?limit=99999999999999999999":        fault("limit", "must be a whole number from 1 to 1000"),
		decisions + "?limit=1&limit=2":                   fault("limit", "must be given once"),
		decisions + "?execution=a%20b":                   fault("execution", idRule),
		decisions + "?before=noon":                       fault("before", "must be an RFC 3339 time such as 2026-11-30T15:04:05Z"),
		decisions + "?after=x":                           fault("after", "is no parameter of this route"),
		"/v1/workspaces/ws_1?verbose=1":                  fault("verbose", "is no parameter of this route"),
		"/v1/workspaces/ws_1/subscriptions?limit=-1":     fault("limit", "must be a whole number from 1 to 1000"),
		"/v1/workspaces/ws_1/executions?limit=1":         fault("limit", "is no parameter of this route"),
		"/v1/workspaces/ws_1/features/f/resources?Limit": fault("Limit", "is no parameter of this route"),
	} {
		p := told(t, request{method: "GET", path: path}.ask(t, door))
		if diff := cmp.Diff([]string{want}, faultsOf(p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if p := told(t, request{method: "GET", path: decisions + "?a;b"}.ask(t, door)); len(faultsOf(p)) != 1 {
		t.Errorf("a query that cannot be read: %v", p)
	}
}
