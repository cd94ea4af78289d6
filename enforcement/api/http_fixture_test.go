package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
)

// Tokens of the tests, one for each scope.
const (
	readToken    = "read-0123456789abcdef"
	executeToken = "execute-0123456789abcdef"
	adminToken   = "admin-0123456789abcdef"
)

// noon is when all of it happens.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// answers are what the fakes behind a door say, and what they were asked.
type answers struct {
	admit      func(enforcement.Request) (schemas.DecisionMade, error)
	progress   func(enforcement.Progress) (enforcement.Extension, error)
	complete   func(enforcement.Completion) (enforcement.Release, error)
	change     func(usage.Once, usage.Change) (usage.Balance, error)
	resources  func(usage.ResourceQuery) (usage.ResourcePage, error)
	keep       func(feature string, resources []string) error
	view       func() error
	decisions  func(ledger.Query) ([]api.DecisionView, error)
	invalidate func(ctx context.Context, workspace, reason string) (int64, error)
}

// Admit is for api.Executor.
func (a *answers) Admit(_ context.Context, r enforcement.Request) (schemas.DecisionMade, error) {
	return a.admit(r)
}

// Progress is for api.Executor.
func (a *answers) Progress(_ context.Context, p enforcement.Progress) (enforcement.Extension, error) {
	return a.progress(p)
}

// Complete is for api.Executor.
func (a *answers) Complete(_ context.Context, c enforcement.Completion, _ *int64, _ string) (enforcement.Release, error) {
	return a.complete(c)
}

// ConsumeOnce is for api.Counter.
func (a *answers) ConsumeOnce(_ context.Context, once usage.Once, c usage.Change) (usage.Balance, error) {
	return a.change(once, c)
}

// ReleaseOnce is for api.Counter.
func (a *answers) ReleaseOnce(_ context.Context, once usage.Once, c usage.Change) (usage.Balance, error) {
	return a.change(once, c)
}

// Resources is for api.Counter.
func (a *answers) Resources(_ context.Context, q usage.ResourceQuery) (usage.ResourcePage, error) {
	return a.resources(q)
}

// Keep is for api.Counter.
func (a *answers) Keep(_ context.Context, _, feature string, resources []string) error {
	return a.keep(feature, resources)
}

// Workspace is for api.Viewer.
func (a *answers) Workspace(_ context.Context, workspace string) (api.WorkspaceView, error) {
	return api.WorkspaceView{
		WorkspaceID: workspace, Limits: map[string]api.LimitView{"max_executions": {}}, Features: map[string]api.FeatureView{"automations": {}},
		OverLimit: []api.OverLimitView{}, Overrides: []api.OverrideView{}, Changes: []api.ChangeView{}, Subscriptions: []api.SubscriptionView{},
	}, a.view()
}

// Executions is for api.Viewer.
func (a *answers) Executions(context.Context, string) ([]api.ExecutionView, error) {
	return nil, a.view()
}

// Subscriptions is for api.Viewer.
func (a *answers) Subscriptions(context.Context, string, int) ([]api.SubscriptionView, error) {
	return nil, a.view()
}

// Check is for api.Viewer.
func (a *answers) Check(_ context.Context, _ string, probes []api.Probe) ([]api.ProbeAnswer, error) {
	return make([]api.ProbeAnswer, len(probes)), a.view()
}

// Decisions is for api.Viewer.
func (a *answers) Decisions(_ context.Context, q ledger.Query) ([]api.DecisionView, error) {
	return a.decisions(q)
}

// Invalidate is for api.Options.
func (a *answers) Invalidate(ctx context.Context, workspace, reason string) (int64, error) {
	return a.invalidate(ctx, workspace, reason)
}

// willing answers everything with yes.
func willing() *answers {
	return &answers{
		admit: func(r enforcement.Request) (schemas.DecisionMade, error) {
			return allowed(r), nil
		},
		progress: func(enforcement.Progress) (enforcement.Extension, error) {
			return enforcement.Extension{Live: true, LeaseExpiresAt: noon.Add(time.Hour)}, nil
		},
		complete: func(enforcement.Completion) (enforcement.Release, error) {
			return enforcement.Release{Released: true, Known: true}, nil
		},
		change: func(_ usage.Once, c usage.Change) (usage.Balance, error) {
			return usage.Balance{Used: c.Quantity, Limit: schemas.LimitOf(5)}, nil
		},
		resources: func(q usage.ResourceQuery) (usage.ResourcePage, error) {
			return usage.ResourcePage{WorkspaceID: q.WorkspaceID, Feature: q.Feature, PlanKey: "free", Limit: schemas.LimitOf(3)}, nil
		},
		keep:       func(string, []string) error { return nil },
		view:       func() error { return nil },
		decisions:  func(ledger.Query) ([]api.DecisionView, error) { return nil, nil },
		invalidate: func(context.Context, string, string) (int64, error) { return 7, nil },
	}
}

// allowed is a decision about a request on a plan of 100 executions, 2 at once.
func allowed(r enforcement.Request) schemas.DecisionMade {
	quota, atOnce, left := int64(100), int64(2), int64(88)
	resets := noon.Add(time.Hour)
	return schemas.DecisionMade{
		DecisionID: "018f2f44-0000-8000-8000-000000000001", Kind: schemas.KindAdmission,
		WorkspaceID: r.WorkspaceID, ExecutionID: r.ExecutionID, RequestEventID: r.EventID, RequestEventSource: r.EventSource,
		Allowed: true, Message: "Allowed.", LimitValue: &quota, Used: 12, Remaining: &left, Exhausted: []string{},
		Concurrent: 1, ConcurrentLimit: &atOnce, Peak: 1, ResetsAt: &resets, PlanKey: "free", PlanRevision: 1,
		PeriodStart: noon.Add(-time.Hour), PeriodEnd: resets, Exact: true, PlanAsOf: noon, DecidedAt: noon,
	}
}

// memory is Claims for a test.
type memory struct {
	mu    sync.Mutex
	fault error
	keys  map[api.Claim]string
}

// Claim is for api.Claims.
func (m *memory) Claim(_ context.Context, c api.Claim) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return "", m.fault
	}
	key := api.Claim{Token: c.Token, Workspace: c.Workspace, Key: c.Key}
	if _, taken := m.keys[key]; !taken {
		if m.keys == nil {
			m.keys = make(map[api.Claim]string)
		}
		m.keys[key] = c.Fingerprint
	}
	return m.keys[key], nil
}

// newDoor is an HTTP door over the fakes, with a token for each scope.
func newDoor(t testing.TB, a *answers, set ...func(*api.Options)) *api.HTTP {
	t.Helper()
	tokens, err := api.ParseTokens("reader:" + readToken + ":read,engine:" + executeToken + ":execute,root:" + adminToken + ":admin")
	if err != nil {
		t.Fatal(err)
	}
	o := api.Options{
		Executions: a, Reader: a, Counters: a, Invalidator: a, Claims: &memory{}, Tokens: tokens,
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return noon },
	}
	for _, change := range set {
		change(&o)
	}
	h, err := api.NewHTTP(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// request is what a test asks.
type request struct {
	method, path, body string
	// token is adminToken unless set; "-" is none.
	token  string
	header map[string]string
}

func (q request) make(t testing.TB) *http.Request {
	t.Helper()
	var body *bytes.Reader
	r := httptest.NewRequestWithContext(t.Context(), q.method, q.path, http.NoBody)
	if q.body != "" {
		body = bytes.NewReader([]byte(q.body))
		r = httptest.NewRequestWithContext(t.Context(), q.method, q.path, body)
		r.Header.Set("Content-Type", "application/json")
	}
	switch q.token {
	case "-":
	case "":
		r.Header.Set("Authorization", "Bearer "+adminToken)
	default:
		r.Header.Set("Authorization", "Bearer "+q.token)
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	return r
}

// ask sends it and returns the answer.
func (q request) ask(t testing.TB, h http.Handler) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, q.make(t))
	return w
}

// told is a problem as a client sees it.
func told(t testing.TB, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	if kind := w.Header().Get("Content-Type"); kind != "application/problem+json" {
		t.Fatalf("status %d with Content-Type %q, want a problem; body %s", w.Code, kind, w.Body)
	}
	var p map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	if status, _ := p["status"].(float64); int(status) != w.Code {
		t.Errorf("the problem says status %v, the answer is %d", p["status"], w.Code)
	}
	return p
}

// slugOf is the kind of a problem.
func slugOf(p map[string]any) string {
	kind, _ := p["type"].(string)
	return strings.TrimPrefix(kind, problems.Base)
}
