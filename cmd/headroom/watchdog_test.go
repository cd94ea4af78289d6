package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// silentEngine is an engine's client whose clock stands two hours behind, so that it
// neither finds an execution of an hour ago to run too long, nor a report of it due.
func silentEngine(t *testing.T) (*client.Client, *nats.Conn) {
	t.Helper()
	nc, err := nats.Connect(schematest.NATSURL(t))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(nc, client.Options{
		Source: "engine", Log: schematest.Logger(t), Timeout: patience, Now: func() time.Time { return time.Now().Add(-2 * time.Hour) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		nc.Close()
	})
	return c, nc
}

func TestTheWatchdogStopsAnExecutionWhoseEngineIsSilent(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	admission := published("e1") // allowed ten minutes
	admission.DecidedAt = time.Now().Add(-time.Hour).UTC().Truncate(time.Millisecond)
	expires := admission.DecidedAt.Add(24 * time.Hour)
	admission.LeaseExpiresAt = &expires
	c, nc := silentEngine(t)
	run, err := c.RunOf(admission)
	if err != nil {
		t.Fatal(err)
	}
	work, stop := run.Context(patient(t))
	defer stop()
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	body, err := schemas.Encode(schemas.NewEvent(schemas.SourceHeadroom, admission.DecisionID, admission.DecidedAt, admission))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.jetStream().Publish(t.Context(), schemas.Topology{}.Decision("ws"), body); err != nil {
		t.Fatal(err)
	}
	<-work.Done()
	var denied *client.Denied
	if !errors.As(context.Cause(work), &denied) || denied.Code != 9004 || denied.Decision.Used != 61 ||
		denied.Decision.RequestEventSource != schemas.SourceHeadroom {
		t.Fatalf("its work ended with %v", context.Cause(work))
	}
	s.log.await(t, "executions that ran too long are told to stop")
	if n := sum(s.scrape()["headroom_watchdog_stopped_total"]); n != 1 {
		t.Errorf("%v executions told to stop are counted", n)
	}
	if text := i.must("decisions", "ws", "--execution", "e1"); !hasLine(text, "9004") {
		t.Errorf("the record does not tell of it:\n%s", text)
	}
}

func TestALeakIsListedUntilItIsReleased(t *testing.T) {
	t.Parallel()
	i := newInstallation(t).with(map[string]string{"HEADROOM_LEASE_GRACE": "1s"})
	i.must("plans", "apply", catalogFile(t, "max_execution_duration_minutes: 10\n", "max_execution_duration_minutes: 0\n"))
	if text := i.must("workspaces", "leaks"); text != "no leaks\n" {
		t.Errorf("before anything ran: %q", text)
	}
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	if d := i.decide(i.jetStream(), "ws", "e1"); !d.Allowed {
		t.Fatalf("%+v", d)
	}
	if line := s.log.await(t, "leases ended without a completion"); line["workspaces"] == nil {
		t.Errorf("the log names no workspaces: %v", line)
	}
	var leaks []leakView
	i.mustJSON(&leaks, "workspaces", "leaks", "ws")
	if len(leaks) != 1 || leaks[0].ExecutionID != "e1" || leaks[0].PlanKey != "free" || leaks[0].LeaseExpiredAt.IsZero() {
		t.Errorf("the leaks are %+v", leaks)
	}
	if text := i.must("workspaces", "leaks"); !hasLine(text, "ws", "e1", "free", "9004 PlanExecutionTimeout") {
		t.Errorf("the table is\n%s", text)
	}
	if text := i.must("workspaces", "leaks", "another"); text != "no leaks\n" {
		t.Errorf("those of another workspace: %q", text)
	}
	families := s.scrape()
	if total, open := sum(families["headroom_leases_leaked_total"]), sum(families["headroom_leases_leaked"]); total != 1 || open != 1 {
		t.Errorf("the metrics tell of %v leaks, %v open", total, open)
	}
	if text := i.must("workspaces", "release", "ws", "e1"); !strings.Contains(text, "is over (canceled); it held no slot any more") {
		t.Errorf("released: %q", text)
	}
	until(patient(t), func() bool { return i.must("workspaces", "leaks") == "no leaks\n" })
	if text := i.must("workspaces", "leaks"); text != "no leaks\n" {
		t.Errorf("it is still listed:\n%s", text)
	}
}

func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func TestASlotIsReleasedByHand(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	js := i.jetStream()
	for _, execution := range []string{"e1", "e2"} {
		if d := i.decide(js, "ws", execution); !d.Allowed {
			t.Fatalf("%+v", d)
		}
	}
	if d := i.decide(js, "ws", "e3"); d.Code != 9002 {
		t.Fatalf("a third of two: %+v", d)
	}

	var got releaseView
	i.mustJSON(&got, "workspaces", "release", "ws", "e1")
	if got.Outcome != schemas.OutcomeCanceled || !got.Released || !got.Recorded || got.AlreadyOver || got.LeaseExpiresAt == nil {
		t.Errorf("it says %+v", got)
	}
	if d := i.decide(js, "ws", "e4"); !d.Allowed {
		t.Errorf("the slot is not free: %+v", d)
	}
	i.mustJSON(&got, "workspaces", "release", "ws", "e1")
	if !got.AlreadyOver || got.Released || got.Outcome != schemas.OutcomeCanceled {
		t.Errorf("again it says %+v", got)
	}
	if text := i.must("workspaces", "release", "ws", "e2"); !strings.Contains(text, "execution e2 of workspace ws is over (canceled): its slot, held until ") {
		t.Errorf("in words: %q", text)
	}
	for what, args := range map[string][]string{
		"never heard of":      {"ws", "e9"},
		"denied":              {"ws", "e3"},
		"another workspace's": {"another", "e4"},
	} {
		if _, _, err := i.run(append([]string{"workspaces", "release"}, args...)...); err == nil || !strings.Contains(err.Error(), "is not known") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, _, err := i.run("workspaces", "release", "ws", "a b"); exitCode(err) != 2 {
		t.Errorf("what is no id: %v", err)
	}
}

func TestAReleaseWithoutRedisIsRecorded(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("migrate")
	d := published("e1")
	d.DecidedAt = time.Now().UTC()
	expires := d.DecidedAt.Add(time.Hour)
	d.LeaseExpiresAt = &expires
	fold(t, d)
	away := i.with(map[string]string{"HEADROOM_REDIS_URL": "redis://127.0.0.1:1/0"})
	var got releaseView
	away.mustJSON(&got, "workspaces", "release", "ws", "e1")
	if !got.Recorded || got.Applied || got.Released || got.Outcome != schemas.OutcomeCanceled {
		t.Errorf("it says %+v", got)
	}
	stream, err := i.jetStream().Stream(t.Context(), schemas.Topology{}.Stream(schemas.StreamExecutions))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.GetLastMsgForSubject(t.Context(), schemas.Topology{}.Completed("ws")); err != nil {
		t.Errorf("the completion is not in the stream: %v", err)
	}
	if _, _, err := away.run("workspaces", "release", "ws", "e2"); err == nil || !strings.Contains(err.Error(), "Redis cannot be asked") {
		t.Errorf("one that only Redis might know: %v", err)
	}
}
