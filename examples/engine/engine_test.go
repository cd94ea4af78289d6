package engine_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/examples/engine"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// headroom answers as one whose workspaces are all on one plan, which tidepool has
// used up.
func headroom(t *testing.T) jetstream.JetStream {
	t.Helper()
	nc := schematest.NATS(t)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (schemas.Topology{}).Ensure(t.Context(), js); err != nil {
		t.Fatal(err)
	}
	_, err = nc.Subscribe(schemas.Topology{}.Requested("*"), func(m *nats.Msg) {
		event, err := schemas.Decode[schemas.ExecutionRequested](m.Subject, m.Data)
		if err != nil {
			t.Error(err)
			return
		}
		d := decide(event)
		body, err := schemas.Encode(schemas.NewEvent("headroom", d.DecisionID, d.DecidedAt, d))
		if err != nil {
			t.Error(err)
			return
		}
		if err := nc.Publish(m.Header.Get("Headroom-Reply"), body); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// told is what the stream has of the executions' outcomes, by id.
func told(t *testing.T, js jetstream.JetStream) map[string]schemas.Outcome {
	t.Helper()
	stream, err := js.Stream(t.Context(), schemas.Topology{}.Stream(schemas.StreamExecutions))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]schemas.Outcome)
	for sequence := uint64(1); sequence <= stream.CachedInfo().State.LastSeq; sequence++ {
		m, err := stream.GetMsg(t.Context(), sequence)
		if err != nil {
			t.Fatal(err)
		}
		if event, err := schemas.Decode[schemas.ExecutionCompleted](m.Subject, m.Data); err == nil {
			all[event.Data.ExecutionID] = event.Data.Outcome
		}
	}
	return all
}

func decide(event schemas.Event[schemas.ExecutionRequested]) schemas.DecisionMade {
	now := time.Now().UTC()
	expires := now.Add(time.Hour)
	limits := schemas.Limits{
		MaxExecutions: schemas.LimitOf(10), MaxConcurrentExecutions: schemas.Unlimited, MaxStorageMB: schemas.Unlimited,
		MaxTasksPerExecution: schemas.LimitOf(80), MaxExecutionDurationMinutes: schemas.LimitOf(10),
		MaxExecutionPayloadSizeMB: schemas.LimitOf(5), MaxExecutionsPerMinute: schemas.Unlimited,
	}
	if event.Data.WorkspaceID == "lantern" {
		limits.MaxTasksPerExecution = schemas.LimitOf(50)
	}
	d := schemas.DecisionMade{
		DecisionID: "d-" + event.ID, Kind: schemas.KindAdmission, WorkspaceID: event.Data.WorkspaceID, ExecutionID: event.Data.ExecutionID,
		RequestEventID: event.ID, RequestEventSource: event.Source, Allowed: true, Message: "Allowed.", LeaseExpiresAt: &expires,
		PlanKey: "free", PeriodStart: now, PeriodEnd: expires, Limits: limits, Exact: true, PlanAsOf: now, DecidedAt: now,
	}
	if event.Data.WorkspaceID == "tidepool" {
		d.Allowed, d.Code, d.Error, d.Message, d.LeaseExpiresAt = false, 9001, "PlanExecutionLimitReached", "All are used.", nil
		d.Limit, d.Exhausted = schemas.LimitExecutions, []string{schemas.LimitExecutions}
	}
	return d
}

func open(t *testing.T, timeout time.Duration) *client.Client {
	t.Helper()
	c, err := client.New(schematest.NATS(t), client.Options{Source: "engine", Timeout: timeout, Log: schematest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestTheSamplesEndAsTheirPlansAllow(t *testing.T) {
	t.Parallel()
	js := headroom(t)
	var screen strings.Builder
	if err := engine.New(open(t, time.Minute), &screen).Run(t.Context(), engine.Samples("1")); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(screen.String(), "\n"), "\n")
	slices.Sort(lines[1:7]) // they end in any order
	want := []string{
		"WORKSPACE  EXECUTION              TASKS  END",
		"bakery     morning-menu-1             3  succeeded",
		"bakery     wedding-album-1            2  stopped 9006 The payload of 6 MB is larger than the 5 MB that plan free allows.",
		"harbor     customs-form-1             2  failed  the customs office is closed",
		"lantern    archive-1                 51  stopped 9003 The execution has 51 tasks; plan free allows 50.",
		"orchard    harvest-report-1          80  succeeded",
		"tidepool   tide-table-1               0  denied  9001 All are used.",
		"",
		"6 workflows: 2 succeeded, 1 failed, 1 denied, 2 stopped.",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("the screen (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]schemas.Outcome{
		"harvest-report-1": schemas.OutcomeSucceeded, "morning-menu-1": schemas.OutcomeSucceeded,
		"wedding-album-1": schemas.OutcomeCanceled, "archive-1": schemas.OutcomeCanceled, "customs-form-1": schemas.OutcomeFailed,
	}, told(t, js)); diff != "" {
		t.Errorf("what Headroom was told (-want +got):\n%s", diff)
	}
}

func TestNothingStartsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	begun := false
	task := func(context.Context, []byte) ([]byte, error) { begun = true; return nil, nil }
	err := engine.New(open(t, 100*time.Millisecond), &strings.Builder{}).Run(t.Context(),
		[]engine.Workflow{{Workspace: "ws", ID: "e1", Tasks: []engine.Task{task}}})
	if !errors.Is(err, client.ErrUndecided) || begun {
		t.Errorf("it ended with %v, a task had begun: %t", err, begun)
	}
}

// The page shows the very code that runs here.
func TestThePageShowsTheIntegrationAsItIs(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("integration.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, found := strings.Cut(string(source), "// run takes a workflow")
	page, err := os.ReadFile("../../docs/client.md")
	if err != nil {
		t.Fatal(err)
	}
	if !found || !strings.Contains(string(page), "```go\n// run takes a workflow"+code+"```\n") {
		t.Error("docs/client.md shows another integration.go")
	}
}
