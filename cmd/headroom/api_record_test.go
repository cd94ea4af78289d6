package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

const askersTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// lastTrace is the traceparent of a workspace's last decision.
func lastTrace(t *testing.T, js jetstream.JetStream, workspace string) string {
	t.Helper()
	stream, err := js.Stream(t.Context(), schemas.Topology{}.Stream(schemas.StreamDecisions))
	if err != nil {
		t.Fatal(err)
	}
	last, err := stream.GetLastMsgForSubject(t.Context(), schemas.Topology{}.Decision(workspace))
	if err != nil {
		t.Fatal(err)
	}
	return last.Header.Get("traceparent")
}

// TestEachDoorLeavesTheSameRecord admits over HTTP and over NATS, is denied, and finds
// all of it wherever decisions are found.
func TestEachDoorLeavesTheSameRecord(t *testing.T) {
	t.Parallel()
	i := newInstallation(t).guarded()
	i.must("plans", "apply", demoCatalog)
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	c, js := newCaller(t, s.addr, engineToken), i.jetStream()
	c.trace = askersTrace
	const executions = "/v1/workspaces/ws/executions"

	var over schemas.DecisionMade
	c.must(http.StatusCreated, &over, "POST", executions, `{"execution_id": "e1", "payload_bytes": 2048}`)
	asked, err := schematest.NATS(t).RequestMsg(&nats.Msg{Subject: "headroom.api.admit", Data: []byte(`{"workspace_id": "ws", "execution_id": "e2"}`)}, patience)
	if err != nil {
		t.Fatal(err)
	}
	var beside schemas.DecisionMade
	if err := json.Unmarshal(asked.Data, &beside); err != nil || !beside.Allowed || beside.Concurrent != 2 {
		t.Errorf("over NATS: %s, %v", asked.Data, err)
	}
	p, header := c.refused("plan-concurrent-execution-limit-reached", "POST", executions, `{"execution_id": "e3"}`)
	if wait, err := strconv.Atoi(header.Get("Retry-After")); err != nil || wait < 1 || p.Code != enforcement.CodeConcurrency {
		t.Errorf("Retry-After is %q with %+v", header.Get("Retry-After"), p)
	}
	for field, want := range map[string]string{
		"RateLimit-Policy": `"max_concurrent_executions";q=2;qu="concurrent-requests"`,
		"RateLimit":        `"max_concurrent_executions";r=0`,
	} {
		if got := header.Get(field); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s, want %s and what follows", field, got, want)
		}
	}
	if got := lastTrace(t, js, "ws"); got != askersTrace {
		t.Errorf("the decision's traceparent is %q, want the asker's", got)
	}
	if d := i.decision(js, "ws", "e1"); d.DecisionID != over.DecisionID || !d.Allowed || d.RequestEventSource != "/api/engine" {
		t.Errorf("on the stream e1 is %+v", d)
	}
	if d := i.decision(js, "ws", "e3"); d.Code != enforcement.CodeConcurrency {
		t.Errorf("on the stream e3 is %+v", d)
	}
	eventually(t, "the ledger has all three", func() bool {
		var rows []schemas.DecisionMade
		i.mustJSON(&rows, "decisions", "ws")
		return slices.Equal(sortedIDs(rows, func(d schemas.DecisionMade) string { return d.ExecutionID }), []string{"e1", "e2", "e3"})
	})

	runs := func() []string {
		var views []api.ExecutionView
		c.must(http.StatusOK, &views, "GET", executions, "")
		return sortedIDs(views, func(v api.ExecutionView) string { return v.ExecutionID })
	}
	if got := runs(); !slices.Equal(got, []string{"e1", "e2"}) {
		t.Errorf("%v run, want e1 and e2", got)
	}
	for _, execution := range []string{"e1", "e2"} {
		var told struct{ Released bool }
		if c.must(http.StatusOK, &told, "POST", executions+"/"+execution+"/complete", `{"outcome": "succeeded"}`); !told.Released {
			t.Errorf("the end of %s frees nothing", execution)
		}
	}
	if got := runs(); len(got) > 0 {
		t.Errorf("%v run after their end", got)
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
}

func sortedIDs[T any](all []T, id func(T) string) []string {
	ids := make([]string, len(all))
	for i, each := range all {
		ids[i] = id(each)
	}
	slices.Sort(ids)
	return ids
}
