package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/cmd/headroom/replay"
	"github.com/headroomhq/headroom/examples"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// realTrace is a trace of scientific workflows that may lie beside the checkout.
const realTrace = "../../../shared/data/workflow-executions.csv"

// The plans of the examples' catalog, from the lowest rank up.
var examplePlans = []numbers{
	{"free", 100, 2, 50, 10, 5},
	{"trial", 10, 3, 100, 30, 25},
	{"pro", 5000, 10, 500, 120, 100},
	{"enterprise", unbounded, 100, 10000, 1440, 2048},
}

func TestEveryExecutionOfATraceGetsTheRightDecision(t *testing.T) {
	t.Parallel()
	one := func(plan numbers) []numbers { plan.key = "only"; return []numbers{plan} }
	cases := []traceCase{
		{name: "examples", trace: examples.Trace(), catalog: examples.Catalog(), plans: examplePlans, shows: []string{
			"  allowed\n", "denied  9001", "denied  9002", "denied  9006", "stopped 9003", "stopped 9004", "stopped 9006",
		}},
		{name: "many workspaces, tight limits, many ties", trace: crowd(), plans: []numbers{
			{"tiny", 4, 1, 20, 1, 2}, {"small", 9, 2, 30, 2, 3}, {"wide", 60, 40, 40, 3, 4}, {"none", 0, 5, 50, 5, 5}, {"shut", 50, 0, 50, 5, 5},
		}},
	}
	if body, err := os.ReadFile(realTrace); err == nil {
		cases = append(cases,
			traceCase{name: "real, examples' plans", trace: body, catalog: examples.Catalog(), plans: examplePlans},
			traceCase{name: "real, quota of three", trace: body, plans: one(numbers{quota: 3, atOnce: 50, tasks: 300, minutes: 60, megabytes: 100000})},
			traceCase{name: "real, one at a time", trace: body, plans: one(numbers{quota: 1000, atOnce: 1, tasks: 100, minutes: 90, megabytes: 4000})},
			traceCase{name: "real, small payloads", trace: body, plans: one(numbers{quota: 6, atOnce: 2, tasks: 5000, minutes: 2000, megabytes: 1})},
			traceCase{name: "real, no bounds", trace: body, plans: one(numbers{quota: unbounded, atOnce: unbounded, tasks: unbounded, minutes: unbounded, megabytes: unbounded})})
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

// traceCase is a trace and the plans that its workspaces take turns on. Without
// a catalog it is written from the plans.
type traceCase struct {
	name    string
	trace   []byte
	catalog []byte
	plans   []numbers
	// shows is what the trace is there to show.
	shows []string
}

func (c traceCase) run(t *testing.T) {
	t.Helper()
	if c.catalog == nil {
		c.catalog = catalogOf(c.plans)
	}
	screen := playTrace(t, c)
	decided := decisionsOf(t)
	workspaces, rows := rowsOf(t, c.trace)
	expected, got := make(map[string]verdict), make(map[string]verdict)
	shown := map[string]int{}
	for i, workspace := range workspaces {
		for id, v := range judge(rows[workspace], c.plans[i%len(c.plans)]) {
			expected[workspace+" "+id] = v
			shown[label("denied  ", v.Code)]++
			shown[label("stopped ", v.Stopped)]++
		}
	}
	for key, d := range decided {
		got[key] = d.verdict
		if d.admissions != 1 || d.runtimes > 1 {
			t.Errorf("%s got %d decisions before its start and %d while it ran", key, d.admissions, d.runtimes)
		}
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("decisions (-expected +got):\n%s", diff)
	}
	for _, text := range c.shows {
		if shown[text] == 0 {
			t.Errorf("nothing in the trace brings %q about", text)
		}
	}
	for text, times := range shown {
		if got := strings.Count(screen, text); got != times && text != "" {
			t.Errorf("%q was shown %d times, want %d:\n%s", text, got, times, screen)
		}
	}
}

// label is how a code is shown beside a decision; an execution that ends in
// peace shows nothing.
func label(verb string, code int) string {
	switch {
	case code != 0:
		return verb + strconv.Itoa(code)
	case verb == "denied  ":
		return "  allowed\n"
	default:
		return ""
	}
}

// playTrace is `headroom dev --once` on the test's services. It returns what was shown.
func playTrace(t *testing.T, c traceCase) string {
	t.Helper()
	dir := t.TempDir()
	command := devCmd{Trace: filepath.Join(dir, "trace.csv"), Catalog: filepath.Join(dir, "catalog.yaml"), Speed: "max", Once: true}
	for path, body := range map[string][]byte{command.Trace: c.trace, command.Catalog: c.catalog} {
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	input, err := command.read(&program{stderr: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	config, err := LoadConfig(devSettings(func(string) string { return "" }), os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	config.NATSURL = NewSecret(schematest.NATSURL(t))
	config.RedisURL = NewSecret(schematest.RedisURL(t))
	config.PostgresURL = NewSecret(schematest.PostgresURL(t))
	var screen strings.Builder
	d := &dev{once: true, input: input, config: config, log: schematest.Logger(t), out: &screen}
	d.view = replay.NewView(&screen, input.trace, input.plans, false)
	ctx, cancel := context.WithTimeout(t.Context(), processPatience)
	defer cancel()
	if err := d.work(ctx); err != nil {
		t.Fatalf("%v\n%s", err, screen.String())
	}
	return screen.String()
}

// heard is what the record says of one execution.
type heard struct {
	verdict
	admissions, runtimes int
}

// decisionsOf reads the whole record of decisions.
func decisionsOf(t *testing.T) map[string]heard {
	t.Helper()
	js, err := jetstream.New(schematest.NATS(t))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "HEADROOM_DECISIONS")
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]heard)
	for sequence := info.State.FirstSeq; sequence <= info.State.LastSeq && sequence > 0; sequence++ {
		message, err := stream.GetMsg(t.Context(), sequence)
		if err != nil {
			t.Fatal(err)
		}
		var event schemas.Event[schemas.DecisionMade]
		if err := json.Unmarshal(message.Data, &event); err != nil {
			t.Fatal(err)
		}
		d := event.Data
		key := d.WorkspaceID + " " + d.ExecutionID
		h := all[key]
		if d.Kind == schemas.KindRuntime {
			h.runtimes++
			h.Stopped = d.Code
		} else {
			h.admissions++
			h.Code, h.Exhausted, h.Concurrent = d.Code, strings.Join(d.Exhausted, " "), d.Concurrent
			h.Used = d.Used
		}
		all[key] = h
	}
	return all
}

// catalogOf writes a catalog with the plans in order of rank.
func catalogOf(plans []numbers) []byte {
	var text strings.Builder
	text.WriteString("plans:\n")
	limit := func(n int64) string {
		if n == unbounded {
			return "unlimited"
		}
		return fmt.Sprint(n)
	}
	for i, plan := range plans {
		fmt.Fprintf(&text, "  %s:\n    default: %t\n    rank: %d\n    limits:\n", plan.key, i == 0, i)
		fmt.Fprintf(&text, "      max_executions: %s\n      max_concurrent_executions: %s\n", limit(plan.quota), limit(plan.atOnce))
		fmt.Fprintf(&text, "      max_tasks_per_execution: %s\n      max_execution_duration_minutes: %s\n", limit(plan.tasks), limit(plan.minutes))
		fmt.Fprintf(&text, "      max_execution_payload_size_mb: %s\n      max_storage_mb: 0\n      max_executions_per_minute: unlimited\n", limit(plan.megabytes))
		text.WriteString("    features: {}\n")
	}
	return []byte(text.String())
}

// crowd is a trace of ten workspaces in ten minutes, with many ends and starts
// at the same instant and payloads of exactly whole megabytes.
func crowd() []byte {
	random := rand.New(rand.NewPCG(20260302, 9)) // the same trace in every run
	begin := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	var text strings.Builder
	text.WriteString("system,application,execution,executed_at,tasks,makespan_seconds,input_bytes,output_bytes\n")
	for i := range 320 {
		at := begin.Add(time.Duration(random.IntN(60)) * 10 * time.Second)
		bytes := func() int64 { return int64(random.IntN(4))<<20 + int64(random.IntN(3)) - 1 }
		fmt.Fprintf(&text, "engine,ws-%d,e%d,%s,%d,%d,%d,%d\n", random.IntN(10), i, at.Format(time.RFC3339),
			random.IntN(60), random.IntN(30)*10, max(bytes(), 0), max(bytes(), 0))
	}
	return []byte(text.String())
}
