package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestTheMicroServiceTellsOfItself(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(nil, nil))
	h.serve()
	h.serve()
	var all []micro.Info
	h.eventually("both tell of themselves", func() bool {
		all = h.instances()
		return len(all) == 2
	})
	info := all[0]
	if info.Name != "headroom" || info.Version != "1.2.3" || info.Description == "" || info.Metadata["documentation"] == "" || info.ID == all[1].ID {
		t.Errorf("info %+v", info)
	}
	var subjects []string
	for _, e := range info.Endpoints {
		subjects = append(subjects, e.Subject)
		if e.QueueGroup != "headroom" || e.Metadata["description"] == "" {
			t.Errorf("endpoint %+v", e)
		}
	}
	want := []string{
		"headroom.api.admit", "headroom.api.progress", "headroom.api.complete", "headroom.api.consume",
		"headroom.api.release", "headroom.api.check", "headroom.api.usage",
	}
	if diff := cmp.Diff(want, subjects); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	if got := info.Endpoints[0].Metadata["request"]; got != "execution_id, payload_bytes?, workspace_id" {
		t.Errorf("admit says that it takes %q", got)
	}
	for range 20 {
		h.request("usage", `{"workspace_id":"ws"}`)
	}
	h.request("usage", `{}`)
	var asked, failed, served int
	h.eventually("all are counted", func() bool {
		asked, failed, served = 0, 0, 0
		for _, s := range gather[micro.Stats](h, "$SRV.STATS.headroom") {
			for _, e := range s.Endpoints {
				var data struct{ Served int }
				if err := json.Unmarshal(e.Data, &data); err != nil {
					t.Fatal(err)
				}
				asked, failed, served = asked+e.NumRequests, failed+e.NumErrors, served+data.Served
			}
		}
		return asked == 21
	})
	if failed != 1 || served != 20 {
		t.Errorf("%d requests, %d wrong, %d served; want 21, 1 and 20", asked, failed, served)
	}
}

func TestAnExecutionFromEndToEndOverNATS(t *testing.T) {
	t.Parallel()
	bounds := limits(ptr[int64](1), nil)
	bounds.MaxTasksPerExecution = schemas.LimitOf(5)
	h := newHouse(t, bounds)
	h.serve()
	d := read[schemas.DecisionMade](t, h.request("admit", `{"workspace_id":"ws","execution_id":"x","payload_bytes":3}`,
		nats.Header{"Traceparent": {"00-a"}}))
	if !d.Admits() || d.ExecutionID != "x" || d.LeaseExpiresAt == nil {
		t.Errorf("admitted: %+v", d)
	}
	if got := h.stored(schemas.StreamDecisions)[0].Headers().Get("traceparent"); got != "00-a" {
		t.Errorf("the decision's trace is %q", got)
	}
	denied := h.request("admit", `{"workspace_id":"ws","execution_id":"y"}`)
	if d := read[schemas.DecisionMade](t, denied); denied.code != "" || d.Allowed || d.Code != enforcement.CodeExecutionQuota {
		t.Errorf("denied with code %q: %+v; want a normal answer", denied.code, d)
	}
	lease := read[struct {
		LeaseExpiresAt time.Time `json:"lease_expires_at"`
	}](t, h.request("progress", `{"workspace_id":"ws","execution_id":"x","tasks":5}`))
	if lease.LeaseExpiresAt.Before(*d.LeaseExpiresAt) {
		t.Errorf("the lease ends at %s, before %s", lease.LeaseExpiresAt, d.LeaseExpiresAt)
	}
	stop := h.request("progress", `{"workspace_id":"ws","execution_id":"x","tasks":6}`)
	if d := read[schemas.DecisionMade](t, stop); stop.code != "" || d.Code != enforcement.CodeTasks {
		t.Errorf("told to stop with code %q: %+v; want a normal answer", stop.code, d)
	}
	if lost := h.request("progress", `{"workspace_id":"ws","execution_id":"nobody"}`); lost.code != "404" {
		t.Errorf("progress of nobody: %q %s", lost.code, lost.Data)
	}
	if got := h.request("complete", `{"workspace_id":"ws","execution_id":"x","outcome":"succeeded","tasks":6}`); string(got.Data) != `{"released":true}` {
		t.Errorf("completed: %q %s", got.code, got.Data)
	}
	if got := h.request("complete", `{"workspace_id":"ws","execution_id":"nobody","outcome":"failed"}`); string(got.Data) != `{"released":false}` {
		t.Errorf("nobody completed: %q %s", got.code, got.Data)
	}
	if n := len(h.stored(schemas.StreamExecutions)); n != 2 {
		t.Errorf("the stream has %d completions, want 2", n)
	}
}

func TestFeaturesAndViewsOverNATS(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(nil, nil))
	known := &counters{}
	h.serve(func(o *api.MicroOptions) { o.Counters = known })
	got := h.request("consume", `{"workspace_id":"ws","feature":"automations","resource_id":"a1"}`, nats.Header{"Idempotency-Key": {"k1"}})
	if want := `{"used":4,"limit":5,"unlimited":false,"remaining":1,"resets_at":null}`; string(got.Data) != want {
		t.Errorf("consumed: %q %s, want %s", got.code, got.Data, want)
	}
	h.request("release", `{"workspace_id":"ws","feature":"automations","quantity":2}`, nats.Header{"Nats-Msg-Id": {"m1"}})
	want := []changed{
		{usage.Once{Scope: "/micro", Key: "k1"}, usage.Change{WorkspaceID: "ws", Feature: "automations", Quantity: 1, ResourceID: "a1"}},
		{usage.Once{Scope: "/micro", Key: "m1"}, usage.Change{WorkspaceID: "ws", Feature: "automations", Quantity: 2}},
	}
	if diff := cmp.Diff(want, known.calls, cmp.AllowUnexported(changed{})); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if got := h.request("check", `{"workspace_id":"ws","checks":[{"feature":"automations"},{"feature":"users"}]}`); got.code != "" ||
		len(read[struct{ Checks []any }](t, got).Checks) != 2 {
		t.Errorf("checked: %q %s", got.code, got.Data)
	}
	if got := h.request("usage", `{"workspace_id":"ws"}`); read[api.WorkspaceView](t, got).WorkspaceID != "ws" {
		t.Errorf("usage: %q %s", got.code, got.Data)
	}
}

func TestARefusedConsumeIsAnAnswer(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(nil, nil))
	known := &counters{}
	h.serve(func(o *api.MicroOptions) { o.Counters = known })
	for name, test := range map[string]struct {
		err    error
		code   string // of the service error, "" for an answer
		status int
	}{
		"no room":          {&usage.QuotaExceeded{Feature: "f", Limit: 5, Used: 5}, "", 429},
		"locked":           {&usage.ResourceLocked{Feature: "f"}, "", 423},
		"not in the plan":  {&usage.PolicyViolation{Feature: "f"}, "", 422},
		"no such feature":  {&usage.PolicyViolation{Feature: "f", Unknown: true}, "422", 422},
		"key used twice":   {&usage.KeyReused{Key: "k"}, "422", 422},
		"away":             {usage.ErrUnavailable, "503", 503},
		"a fault of ours":  {errors.New("secret"), "500", 500},
		"what is not seen": {fmt.Errorf("look up: %w", &usage.QuotaExceeded{}), "", 429},
	} {
		known.err = test.err
		got := h.request("consume", `{"workspace_id":"ws","feature":"f"}`)
		p := read[problems.Problem](t, got)
		if got.code != test.code || p.Status != test.status || got.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: code %q, %s; want %q and a problem with status %d", name, got.code, got.Data, test.code, test.status)
		}
		if strings.Contains(string(got.Data), "secret") {
			t.Errorf("%s: tells its cause: %s", name, got.Data)
		}
		if test.status == 503 && got.Header.Get("Retry-After") == "" {
			t.Errorf("%s: says nothing of when to ask again", name)
		}
	}
}

func TestAWrongRequestOverNATSSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(nil, nil))
	h.serve()
	long := `{"workspace_id":"` + strings.Repeat("x", 70_000) + `"}`
	for name, test := range map[string]struct {
		endpoint, body string
		header         nats.Header
		code, field    string
	}{
		"no body":              {"admit", "", nil, "400", ""},
		"no JSON":              {"admit", "{", nil, "400", ""},
		"no object":            {"admit", "[]", nil, "422", "body"},
		"too large":            {"usage", long, nil, "413", ""},
		"a field too many":     {"admit", `{"workspace_id":"ws","execution_id":"x","plan":"pro"}`, nil, "422", "plan"},
		"a field twice":        {"admit", `{"workspace_id":"ws","execution_id":"x","execution_id":"y"}`, nil, "422", "execution_id"},
		"another case":         {"admit", `{"Workspace_ID":"ws","workspace_id":"ws","execution_id":"x"}`, nil, "422", "Workspace_ID"},
		"a field of the wrong": {"admit", `{"workspace_id":"ws","execution_id":"x","payload_bytes":"3"}`, nil, "422", "payload_bytes"},
		"less than nothing":    {"progress", `{"workspace_id":"ws","execution_id":"x","tasks":-1}`, nil, "422", "tasks"},
		"no workspace":         {"admit", `{"execution_id":"x"}`, nil, "422", "workspace_id"},
		"a wildcard":           {"complete", `{"workspace_id":"*","execution_id":"x","outcome":"failed"}`, nil, "422", "workspace_id"},
		"another outcome":      {"complete", `{"workspace_id":"ws","execution_id":"x","outcome":"won"}`, nil, "422", "outcome"},
		"no feature":           {"consume", `{"workspace_id":"ws"}`, nil, "422", "feature"},
		"no checks":            {"check", `{"workspace_id":"ws"}`, nil, "422", "checks"},
		"a key with blanks":    {"admit", `{"workspace_id":"ws","execution_id":"x"}`, nats.Header{"Idempotency-Key": {"a b"}}, "422", "Idempotency-Key"},
		"an id with blanks":    {"admit", `{"workspace_id":"ws","execution_id":"x"}`, nats.Header{"Nats-Msg-Id": {"a b"}}, "422", "Nats-Msg-Id"},
	} {
		got := h.request(test.endpoint, test.body, test.header)
		p := read[problems.Problem](t, got)
		field := ""
		if len(p.Errors) > 0 {
			field = p.Errors[0].Field
		}
		if got.code != test.code || field != test.field || p.Detail == "" || got.Header.Get(micro.ErrorHeader) != p.Title {
			t.Errorf("%s: code %q, %s; want %s about %q", name, got.code, got.Data, test.code, test.field)
		}
	}
	if n := h.Stats().Batched(); n != 0 {
		t.Errorf("%d wrong requests were asked", n)
	}
}

func TestAKeyMakesOneRequestOfMany(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(ptr[int64](0), nil))
	h.serve()
	h.serve()
	const body = `{"workspace_id":"ws","execution_id":"x"}`
	var first schemas.DecisionMade
	for i, header := range []nats.Header{{"Idempotency-Key": {"k"}}, {"idempotency-key": {"k"}, "Nats-Msg-Id": {"other"}}, {"Nats-Msg-Id": {"k"}}} {
		d := read[schemas.DecisionMade](t, h.request("admit", body, header))
		if i == 0 {
			first = d
		}
		if d.DecisionID != first.DecisionID || d.RequestEventID != "k" {
			t.Errorf("request %d is decision %s on event %q, want %s", i, d.DecisionID, d.RequestEventID, first.DecisionID)
		}
	}
	if d := read[schemas.DecisionMade](t, h.request("admit", body)); d.DecisionID == first.DecisionID {
		t.Error("a request without a key is taken for the one with a key")
	}
}

func TestAKeyOfAnotherRequestIsRefusedOverNATS(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(nil, nil))
	h.serve(func(o *api.MicroOptions) { o.Claims = api.NewRedisClaims(schematest.Redis(t), "headroom") })
	key := nats.Header{"Idempotency-Key": {"k"}}
	first := read[schemas.DecisionMade](t, h.request("admit", `{"workspace_id":"ws","execution_id":"x"}`, key))
	for endpoint, body := range map[string]string{
		"admit": `{"workspace_id":"ws","execution_id":"y"}`, "complete": `{"workspace_id":"ws","execution_id":"x","outcome":"failed"}`,
	} {
		m := h.request(endpoint, body, key)
		p := read[problems.Problem](t, m)
		if m.Header.Get(micro.ErrorCodeHeader) != "422" || p.Slug() != problems.KeyReused {
			t.Errorf("%s under the key of another request: %s %s", endpoint, m.Header.Get(micro.ErrorCodeHeader), m.Data)
		}
	}
	if d := read[schemas.DecisionMade](t, h.request("admit", `{"workspace_id":"ws","execution_id":"x"}`, key)); d.DecisionID != first.DecisionID {
		t.Errorf("the request of the key is decision %s, want %s", d.DecisionID, first.DecisionID)
	}
	read[schemas.DecisionMade](t, h.request("admit", `{"workspace_id":"other","execution_id":"y"}`, key))
}

func TestAReplyMustBeAnInbox(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(nil, nil))
	h.serve()
	const body = `{"workspace_id":"ws","execution_id":"x"}`
	stream := h.topology.Stream(schemas.StreamDecisions)
	for _, reply := range []string{"$JS.API.STREAM.DELETE." + stream, "headroom.decisions.ws", "_INBOX.", ""} {
		for _, text := range []string{body, "{"} {
			if err := h.nats.PublishMsg(&nats.Msg{Subject: "headroom.api.admit", Reply: reply, Data: []byte(text)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	h.request("admit", body) // comes after them
	if n := len(h.stored(schemas.StreamDecisions)); n != 1 {
		t.Errorf("the stream has %d messages, want the one decision of who can be answered", n)
	}
}

func TestRequestsAreServedSideBySide(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(nil, nil))
	arrived, opened := make(chan struct{}, 8), make(chan struct{})
	s := h.serve(func(o *api.MicroOptions) {
		o.MaxAtOnce = 8
		o.Executions = executor{Executor: o.Executions, admit: func(ctx context.Context, r enforcement.Request) (schemas.DecisionMade, error) {
			arrived <- struct{}{}
			<-opened
			return h.Admit(ctx, r)
		}}
	})
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			got := h.request("admit", fmt.Sprintf(`{"workspace_id":"ws","execution_id":"x%d"}`, i))
			if got.code != "" || !read[schemas.DecisionMade](t, got).Admits() {
				t.Errorf("request %d: %q %s", i, got.code, got.Data)
			}
		})
	}
	for range 8 {
		<-arrived
	}
	for _, endpoint := range []string{"admit", "usage"} {
		got := h.request(endpoint, map[string]string{
			"admit": `{"workspace_id":"ws","execution_id":"y"}`, "usage": `{"workspace_id":"ws"}`,
		}[endpoint])
		if got.code != "503" || got.Header.Get("Retry-After") == "" {
			t.Errorf("one too many to %s: %q %s", endpoint, got.code, got.Data)
		}
	}
	// A drain answers those who are inside.
	s.stop()
	h.eventually("no instance is listed", func() bool { return len(h.instances()) == 0 })
	close(opened)
	wait.Wait()
	s.halt()
	m := &nats.Msg{Subject: "headroom.api.admit", Data: []byte(`{"workspace_id":"ws","execution_id":"z"}`)}
	if _, err := h.nats.RequestMsg(m, patience); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("after the drain: %v, want nobody", err)
	}
}

func TestAPanicIsAnAnswerToo(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(nil, nil))
	h.serve(func(o *api.MicroOptions) {
		o.Executions = executor{Executor: o.Executions, admit: func(context.Context, enforcement.Request) (schemas.DecisionMade, error) {
			panic("poison")
		}}
	})
	for range 2 {
		got := h.request("admit", `{"workspace_id":"ws","execution_id":"x"}`)
		if got.code != "500" || strings.Contains(string(got.Data), "poison") {
			t.Errorf("a panic: %q %s", got.code, got.Data)
		}
	}
}

func TestManyAsksOverNATSNeverPassALimit(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(ptr[int64](20), nil))
	h.serve()
	h.serve(func(o *api.MicroOptions) { o.Executions = h.another() })
	var mu sync.Mutex
	codes := map[int]int{}
	var wait sync.WaitGroup
	for i := range 300 {
		wait.Go(func() {
			d := read[schemas.DecisionMade](t, h.request("admit", fmt.Sprintf(`{"workspace_id":"ws","execution_id":"x%d"}`, i)))
			mu.Lock()
			defer mu.Unlock()
			codes[d.Code]++
		})
	}
	wait.Wait()
	if diff := cmp.Diff(map[int]int{0: 20, 9001: 280}, codes); diff != "" {
		t.Errorf("answers by code (-want +got):\n%s", diff)
	}
	if n := allows(h.decisions()); n != 20 {
		t.Errorf("the stream admits %d", n)
	}
}
