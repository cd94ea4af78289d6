package api_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
)

func TestAnAllowedExecutionIsTheDecision(t *testing.T) {
	t.Parallel()
	w := admission.keyed("key-1").ask(t, newDoor(t, willing()))
	var got schemas.DecisionMade
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusCreated {
		t.Fatalf("status %d, error %v; body %s", w.Code, err, w.Body)
	}
	want := allowed(enforcement.Request{WorkspaceID: "ws_1", ExecutionID: "ex_1", EventID: "key-1", EventSource: "/api/root"})
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(schemas.Limit{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, want := range map[string]string{
		"RateLimit-Policy": `"max_executions";q=100, "max_concurrent_executions";q=2;qu="concurrent-requests"`,
		"RateLimit":        `"max_executions";r=88;t=3600, "max_concurrent_executions";r=1`,
		"Cache-Control":    "no-store",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestAShadowOfADenialIsCreated(t *testing.T) {
	t.Parallel()
	a := willing()
	a.admit = func(r enforcement.Request) (schemas.DecisionMade, error) {
		d := allowed(r)
		d.Shadow, d.Code, d.Error = true, enforcement.CodeExecutionQuota, enforcement.CodeName(enforcement.CodeExecutionQuota)
		return d, nil
	}
	a.progress = func(enforcement.Progress) (enforcement.Extension, error) {
		d := schemas.DecisionMade{Allowed: true, Shadow: true, Code: enforcement.CodeTasks}
		return enforcement.Extension{Live: true, LeaseExpiresAt: noon, Decision: &d}, nil
	}
	door := newDoor(t, a)
	if w := admission.ask(t, door); w.Code != http.StatusCreated {
		t.Errorf("admit: status %d; body %s", w.Code, w.Body)
	}
	if w := advance.ask(t, door); w.Code != http.StatusOK {
		t.Errorf("progress: status %d; body %s", w.Code, w.Body)
	}
}

// TestTheBodiesOfTheContract are the shapes that clients rely on, to the byte.
func TestTheBodiesOfTheContract(t *testing.T) {
	t.Parallel()
	a := willing()
	a.resources = func(q usage.ResourceQuery) (usage.ResourcePage, error) {
		return usage.ResourcePage{
			WorkspaceID: q.WorkspaceID, Feature: q.Feature, PlanKey: "free", Used: 3, Limit: schemas.LimitOf(1), Next: "place 2",
			Resources: []usage.Resource{{ID: "a_1", Quantity: 1, CreatedAt: noon, Kept: 1}, {ID: "a_2", Quantity: 2, CreatedAt: noon, Locked: true}},
		}, nil
	}
	a.change = func(_ usage.Once, c usage.Change) (usage.Balance, error) {
		if c.Feature == "mails" {
			return usage.Balance{Used: 9, Limit: schemas.Unlimited, ResetsAt: new(noon.In(time.FixedZone("", 3600)))}, nil
		}
		return usage.Balance{Used: c.Quantity, Limit: schemas.LimitOf(5)}, nil
	}
	door := newDoor(t, a)
	mails := good["consume"].request
	mails.path = strings.Replace(mails.path, "automations", "mails", 1)
	for name, c := range map[string]struct {
		request
		want string
	}{
		"progress":   {advance, `{"execution_id":"ex_1","lease_expires_at":"2026-11-30T13:00:00Z"}`},
		"complete":   {good["complete"].request, `{"released":true}`},
		"consume":    {good["consume"].request, `{"used":1,"limit":5,"unlimited":false,"remaining":4,"resets_at":null}`},
		"release":    {good["release"].request, `{"used":2,"limit":5,"unlimited":false,"remaining":3,"resets_at":null}`},
		"unlimited":  {mails, `{"used":9,"limit":null,"unlimited":true,"remaining":null,"resets_at":"2026-11-30T12:00:00Z"}`},
		"executions": {good["executions"].request, `[]`},
		"invalidate": {good["invalidate"].request, `{"workspace_id":"ws_1","revision":7}`},
		"resources": {good["resources"].request, `{"workspace_id":"ws_1","feature":"automations","plan_key":"free","used":3,"loose":0,"limit":1,"unlimited":false,"resources":[` +
			`{"resource_id":"a_1","quantity":1,"created_at":"2026-11-30T12:00:00Z","kept":1,"locked":false},` +
			`{"resource_id":"a_2","quantity":2,"created_at":"2026-11-30T12:00:00Z","kept":0,"locked":true,` +
			`"reason":"a_2 of automations is locked: plan free allows 1 and there are 3; release others, keep this one instead of another, or upgrade"}]}`},
	} {
		w := c.ask(t, door)
		if diff := cmp.Diff(c.want, w.Body.String()); diff != "" {
			t.Errorf("%s: status %d (-want +got):\n%s", name, w.Code, diff)
		}
	}
	if got, want := good["resources"].ask(t, door).Header().Get("Link"), `</v1/workspaces/ws_1/features/automations/resources?after=place+2&limit=2>; rel="next"`; got != want {
		t.Errorf("Link %s, want %s", got, want)
	}
}

func TestThePagesOfTheRecordLinkOn(t *testing.T) {
	t.Parallel()
	all := make([]schemas.DecisionMade, 5)
	for i := range all {
		all[i] = allowed(enforcement.Request{WorkspaceID: "ws_1", ExecutionID: "ex_1"})
		all[i].DecidedAt = noon.Add(-time.Duration(i) * time.Millisecond)
	}
	a := willing()
	a.decisions = func(q ledger.Query) ([]api.DecisionView, error) {
		var page []api.DecisionView
		for _, d := range all {
			if (q.Before.IsZero() || d.DecidedAt.Before(q.Before)) && len(page) < q.Limit && q.Execution == "ex_1" {
				page = append(page, api.ViewDecision(d))
			}
		}
		return page, nil
	}
	door := newDoor(t, a)
	path, seen := "/v1/workspaces/ws_1/decisions?execution=ex_1&limit=2", 0
	for pages := 0; path != ""; pages++ {
		if pages > len(all) {
			t.Fatal("the pages do not end")
		}
		w := request{method: "GET", path: path}.ask(t, door)
		var page []api.DecisionView
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		for _, d := range page {
			if !d.DecidedAt.Equal(all[seen].DecidedAt) {
				t.Errorf("decision %d is of %s", seen, d.DecidedAt)
			}
			seen++
		}
		path, _, _ = strings.Cut(strings.TrimPrefix(w.Header().Get("Link"), "<"), ">")
	}
	if seen != len(all) {
		t.Errorf("saw %d decisions of %d", seen, len(all))
	}
}

func TestABodyThatStopsArrivingIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(newDoor(t, willing()))
	server.Config.ReadTimeout = 50 * time.Millisecond
	server.Start()
	defer server.Close()
	dialer := net.Dialer{}
	c, err := dialer.DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	head := "POST /v1/workspaces/ws_1/executions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + adminToken +
		"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
	if _, err := c.Write([]byte(head)); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4096)
	n, err := c.Read(answer)
	if err != nil || !strings.Contains(string(answer[:n]), "400 Bad Request") {
		t.Errorf("got %q, error %v", answer[:n], err)
	}
}
