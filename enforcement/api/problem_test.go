package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

const problemsPage = "../../docs/problems.md"

// occasion is how a kind of problem comes about.
type occasion struct {
	request
	prepare func(*answers)
	// before is a request that is made first.
	before *request
	header http.Header
}

var (
	admission = request{method: "POST", path: "/v1/workspaces/ws_1/executions", body: `{"execution_id": "ex_1"}`}
	advance   = request{method: "PATCH", path: "/v1/workspaces/ws_1/executions/ex_1", body: `{"tasks": 51}`}
	consume   = request{method: "POST", path: "/v1/workspaces/ws_1/features/automations/consume", body: `{"resource_id": "a_6"}`}
)

// refused is a decision on plan free that a limit made.
func refused(code int, value, used int64, message string) schemas.DecisionMade {
	d := allowed(enforcement.Request{WorkspaceID: "ws_1", ExecutionID: "ex_1"})
	left := max(value-used, 0)
	d.Allowed, d.Code, d.Error, d.Message = false, code, enforcement.CodeName(code), message
	d.Limit, d.LimitValue, d.Used, d.Remaining = enforcement.LimitOfCode(code), &value, used, &left
	return d
}

func denying(d schemas.DecisionMade, retry time.Duration) func(*answers) {
	if retry > 0 {
		d.RetryAfterMS = new(retry.Milliseconds())
	}
	return func(a *answers) {
		a.admit = func(enforcement.Request) (schemas.DecisionMade, error) { return d, nil }
	}
}

func stopping(d schemas.DecisionMade) func(*answers) {
	return func(a *answers) {
		a.progress = func(enforcement.Progress) (enforcement.Extension, error) {
			return enforcement.Extension{Live: true, Decision: &d}, nil
		}
	}
}

func refusing(err error) func(*answers) {
	return func(a *answers) {
		a.change = func(usage.Once, usage.Change) (usage.Balance, error) { return usage.Balance{}, err }
		a.view = func() error { return err }
		a.admit = func(enforcement.Request) (schemas.DecisionMade, error) { return schemas.DecisionMade{}, err }
	}
}

// ofPlans are the problems that a plan makes.
func ofPlans() map[string]occasion {
	undecided := refused(enforcement.CodeUnavailable, 0, 0, "Headroom could not decide, so the execution is refused: no answer could be given in time.")
	undecided.Limit, undecided.LimitValue, undecided.Remaining = "", nil, nil
	storage := consume
	storage.path, storage.body = "/v1/workspaces/ws_1/features/storage_bytes/consume", `{"quantity": 4096}`
	limited := func(name, left string) http.Header {
		return http.Header{"Retry-After": {"3600"}, "Ratelimit-Policy": {name}, "Ratelimit": {left}}
	}
	return map[string]occasion{
		"plan-execution-limit-reached": {
			request: admission, prepare: denying(refused(enforcement.CodeExecutionQuota, 100, 100, "All 100 executions of plan free in this period are used."), time.Hour),
			header: limited(`"max_executions";q=100`, `"max_executions";r=0;t=3600`),
		},
		"plan-concurrent-execution-limit-reached": {
			request: admission, prepare: denying(refused(enforcement.CodeConcurrency, 2, 2, "2 executions run, as many as plan free allows at once."), 0),
			header: http.Header{
				"Retry-After": {"5"}, "Ratelimit-Policy": {`"max_concurrent_executions";q=2;qu="concurrent-requests"`},
				"Ratelimit": {`"max_concurrent_executions";r=0`},
			},
		},
		"plan-task-per-execution-limit-reached": {
			request: advance, prepare: stopping(refused(enforcement.CodeTasks, 50, 51, "51 tasks, plan free allows 50 in one execution.")),
		},
		"plan-execution-timeout": {
			request: advance, prepare: stopping(refused(enforcement.CodeDuration, 10, 11, "11 minutes, plan free allows 10 for one execution.")),
		},
		"plan-rate-limit-exceeded": {
			request: admission, prepare: denying(refused(enforcement.CodeRate, 60, 60, "Started faster than the 60 executions a minute of plan free."), 800*time.Millisecond),
			header: http.Header{
				"Retry-After": {"1"}, "Ratelimit-Policy": {`"max_executions_per_minute";q=60;w=60`},
				"Ratelimit": {`"max_executions_per_minute";r=0;t=1`},
			},
		},
		"plan-payload-size-exceeded": {
			request: admission, prepare: denying(refused(enforcement.CodePayload, 5, 6, "A payload of 6 MB, plan free allows 5."), 0),
		},
		"plan-storage-limit-reached": {
			request: storage, prepare: refusing(&usage.QuotaExceeded{
				WorkspaceID: "ws_1", Feature: "storage_bytes", PlanKey: "free", Used: 104857000, Limit: 104857600, Requested: 4096,
			}),
			header: http.Header{"Retry-After": {"60"}, "Ratelimit-Policy": {`"storage_bytes";q=104857600`}, "Ratelimit": {`"storage_bytes";r=600`}},
		},
		"plan-enforcement-unavailable": {request: admission, prepare: denying(undecided, 0), header: http.Header{"Retry-After": {"5"}}},
		"quota-exceeded": {
			request: consume, prepare: refusing(&usage.QuotaExceeded{
				WorkspaceID: "ws_1", Feature: "automations", PlanKey: "free", Used: 5, Limit: 5, Requested: 1, ResetsAt: new(noon.Add(time.Hour)),
			}),
			header: limited(`"automations";q=5`, `"automations";r=0;t=3600`),
		},
		"policy-violation": {request: consume, prepare: refusing(&usage.PolicyViolation{WorkspaceID: "ws_1", Feature: "automations", PlanKey: "free"})},
		"resource-locked": {
			request: consume, prepare: refusing(&usage.ResourceLocked{
				WorkspaceID: "ws_1", Feature: "automations", ResourceID: "a_6", PlanKey: "free", Used: 10, Limit: 3,
			}),
		},
		"not-entitled": {request: admission, prepare: refusing(fmt.Errorf("admit: %w", subscriptions.ErrNotEntitled))},
	}
}

// ofRequests are those of the request, and of Headroom itself.
func ofRequests() map[string]occasion {
	with := func(q request, change func(*request)) request {
		change(&q)
		return q
	}
	keyed := map[string]string{"Idempotency-Key": "key-1"}
	first := with(admission, func(q *request) { q.header = keyed })
	return map[string]occasion{
		"unauthorized": {
			request: with(admission, func(q *request) { q.token = "-" }),
			header:  http.Header{"Www-Authenticate": {`Bearer realm="headroom"`}},
		},
		"insufficient-scope": {
			request: with(admission, func(q *request) { q.token = readToken }),
			header:  http.Header{"Www-Authenticate": {`Bearer realm="headroom", error="insufficient_scope", scope="execute"`}},
		},
		"not-found":             {request: request{method: "GET", path: "/v1/workspace"}},
		"execution-not-running": {request: advance, prepare: func(a *answers) { a.progress = gone }},
		"method-not-allowed": {
			request: request{method: "DELETE", path: "/v1/workspaces/ws_1/executions"},
			header:  http.Header{"Allow": {"GET, HEAD, POST, OPTIONS"}},
		},
		"malformed-body":  {request: with(admission, func(q *request) { q.body = `{"execution_id": "ex_1"` })},
		"invalid-request": {request: with(admission, func(q *request) { q.body = `{"execution_id": "ex 1", "payload_byte": 5}` })},
		"unsupported-media-type": {
			request: with(admission, func(q *request) { q.header = map[string]string{"Content-Type": "text/plain"} }),
		},
		"body-too-large":         {request: with(admission, func(q *request) { q.body = `"` + strings.Repeat("x", api.MaxBody) + `"` })},
		"idempotency-key-reused": {before: &first, request: with(first, func(q *request) { q.body = `{"execution_id": "ex_2"}` })},
		"unavailable": {
			request: admission, prepare: refusing(fmt.Errorf("admit: %w", enforcement.ErrUnavailable)),
			header: http.Header{"Retry-After": {"5"}},
		},
		"internal-error": {request: admission, prepare: refusing(errors.New("the cause is for the log"))},
	}
}

func gone(enforcement.Progress) (enforcement.Extension, error) { return enforcement.Extension{}, nil }

// minted is an instance that is another each time.
var minted = regexp.MustCompile(`urn:uuid:[0-9a-f-]{36}`)

const exampleInstance = "urn:uuid:01940e4c-5b6e-7c3a-9d40-2f6a8b1c0d9e"

// TestEveryProblemIsAnsweredAsDocumented reaches each kind through a door: the example
// of its section in docs/problems.md is the body, to the byte but for white space.
func TestEveryProblemIsAnsweredAsDocumented(t *testing.T) {
	page, err := os.ReadFile(problemsPage)
	if err != nil {
		t.Fatal(err)
	}
	occasions := ofPlans()
	for slug, o := range ofRequests() {
		occasions[slug] = o
	}
	check := documentValidator(t)
	for _, kind := range problems.Types() {
		o, reached := occasions[kind.Slug]
		delete(occasions, kind.Slug)
		if !reached {
			t.Errorf("nothing in this test reaches %s", kind.Slug)
			continue
		}
		a := willing()
		if o.prepare != nil {
			o.prepare(a)
		}
		door := newDoor(t, a)
		if o.before != nil {
			o.before.ask(t, door)
		}
		w := o.ask(t, door)
		if slug := slugOf(told(t, w)); slug != kind.Slug || w.Code != kind.Status {
			t.Errorf("%s: got %s with status %d; body %s", kind.Slug, slug, w.Code, w.Body)
			continue
		}
		if valid, faults := check.ValidateHttpResponse(o.make(t), w.Result()); !valid && kind.Slug != "not-found" && kind.Slug != "method-not-allowed" {
			t.Errorf("%s: the answer is not as the document says: %v", kind.Slug, faults)
		}
		for _, name := range []string{"Retry-After", "Ratelimit-Policy", "Ratelimit", "Www-Authenticate", "Allow"} {
			if diff := cmp.Diff(o.header.Get(name), w.Header().Get(name)); diff != "" {
				t.Errorf("%s: field %s (-want +got):\n%s", kind.Slug, name, diff)
			}
		}
		var body bytes.Buffer
		if err := json.Indent(&body, minted.ReplaceAll(w.Body.Bytes(), []byte(exampleInstance)), "", "  "); err != nil {
			t.Fatal(err)
		}
		if *update {
			page = withExample(t, page, kind.Slug, body.String())
		}
		if diff := cmp.Diff(exampleIn(t, page, kind.Slug), body.String()); diff != "" {
			t.Errorf("%s: docs/problems.md shows another body (-page +answer):\n%s", kind.Slug, diff)
		}
	}
	for slug := range occasions {
		t.Errorf("%s is no problem", slug)
	}
	if *update {
		if err := os.WriteFile(problemsPage, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// section is the part of the page that an address ending in #slug leads to.
func section(t *testing.T, page []byte, slug string) (from, to int) {
	t.Helper()
	from = bytes.Index(page, []byte("\n## "+slug+"\n"))
	if from < 0 {
		t.Fatalf("docs/problems.md has no section %s", slug)
	}
	to = bytes.Index(page[from+1:], []byte("\n## "))
	if to < 0 {
		return from, len(page)
	}
	return from, from + 1 + to
}

const fence = "\n```json\n"

func exampleIn(t *testing.T, page []byte, slug string) string {
	t.Helper()
	from, to := section(t, page, slug)
	_, example, found := strings.Cut(string(page[from:to]), fence)
	if !found {
		t.Fatalf("section %s of docs/problems.md has no example", slug)
	}
	example, _, _ = strings.Cut(example, "\n```")
	return example
}

func withExample(t *testing.T, page []byte, slug, body string) []byte {
	t.Helper()
	from, _ := section(t, page, slug)
	old := fence + exampleIn(t, page, slug)
	at := from + bytes.Index(page[from:], []byte(old))
	return bytes.Join([][]byte{page[:at], page[at+len(old):]}, []byte(fence+body))
}

func TestEachProblemHasOneSection(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(problemsPage)
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, kind := range problems.Types() {
		known[kind.Slug] = true
		from, to := section(t, page, kind.Slug)
		text := strings.Join(strings.Fields(string(page[from:to])), " ")
		facts := []string{kind.Title, fmt.Sprintf("status %d", kind.Status), kind.When}
		if kind.Code != 0 {
			facts = append(facts, fmt.Sprintf("code %d", kind.Code))
		}
		if kind.Name != "" {
			facts = append(facts, "`"+kind.Name+"`")
		}
		for _, fact := range facts {
			if !strings.Contains(text, fact) {
				t.Errorf("section %s does not say %q", kind.Slug, fact)
			}
		}
	}
	for _, match := range regexp.MustCompile(`(?m)^## (\S+)$`).FindAllStringSubmatch(string(page), -1) {
		if !known[match[1]] {
			t.Errorf("section %s is of no problem, or there twice", match[1])
		}
		known[match[1]] = false
	}
}

func TestADeadlineIsUnavailable(t *testing.T) {
	t.Parallel()
	a := willing()
	a.invalidate = func(ctx context.Context, _, _ string) (int64, error) {
		<-ctx.Done()
		return 0, fmt.Errorf("invalidate: %w", ctx.Err())
	}
	door := newDoor(t, a, func(o *api.Options) { o.Timeout = time.Millisecond })
	w := request{method: "POST", path: "/v1/workspaces/ws_1/invalidate"}.ask(t, door)
	if slug := slugOf(told(t, w)); slug != "unavailable" || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %s, Retry-After %q", slug, w.Header().Get("Retry-After"))
	}
}
