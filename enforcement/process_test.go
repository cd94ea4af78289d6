package enforcement_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// jobVariable carries a job to a process that a test starts of its own binary.
const jobVariable = "HEADROOM_ENFORCEMENT_TEST_JOB"

// job is what one process asks: requests First to First+Count-1, all in parallel.
type job struct {
	Redis        string
	Start, End   time.Time
	Limits       schemas.Limits
	First, Count int
}

// answered is one decision as a process reports it.
type answered struct {
	Execution string
	Code      int
	Used      int64
	Err       string
}

func worker(text string, out io.Writer) int {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	options, err := redis.ParseURL(j.Redis)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	client := redis.NewClient(options)
	defer client.Close()
	h := houseOver(client, j.Limits)
	h.plans.set(func(p *subscriptions.PlanInfo) {
		p.Period = subscriptions.Period{Start: j.Start, End: j.End}
	})
	answers := make([]answered, j.Count)
	var wait sync.WaitGroup
	for i := range j.Count {
		wait.Go(func() {
			execution := fmt.Sprintf("e%d", j.First+i)
			got := h.Admit(context.Background(), []enforcement.Request{ask(execution, "1")})[0]
			answers[i] = answered{Execution: execution, Code: got.Decision.Code, Used: got.Decision.Used}
			if got.Err != nil {
				answers[i].Err = got.Err.Error()
			}
		})
	}
	wait.Wait()
	if err := json.NewEncoder(out).Encode(answers); err != nil {
		return 1
	}
	return 0
}

// runProcesses asks 500 requests of four processes at once.
func runProcesses(t *testing.T, limits schemas.Limits) []answered {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now().UTC().Truncate(time.Millisecond).Add(-time.Hour)
	outputs := make([]bytes.Buffer, 4)
	var wait sync.WaitGroup
	for i := range outputs {
		body, err := json.Marshal(job{
			Redis: schematest.RedisURL(t), Start: start, End: start.Add(48 * time.Hour), Limits: limits, First: 125 * i, Count: 125,
		})
		if err != nil {
			t.Fatal(err)
		}
		process := exec.CommandContext(t.Context(), self)
		process.Env = append(os.Environ(), jobVariable+"="+string(body))
		process.Stdout, process.Stderr = &outputs[i], os.Stderr
		wait.Go(func() {
			if err := process.Run(); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	wait.Wait()
	var all []answered
	for i := range outputs {
		var some []answered
		if err := json.Unmarshal(outputs[i].Bytes(), &some); err != nil {
			t.Fatalf("process %d said %q: %v", i, outputs[i].String(), err)
		}
		all = append(all, some...)
	}
	return all
}

func TestFourProcessesNeverPassALimit(t *testing.T) {
	t.Parallel()
	quota := func(n, most schemas.Limit) schemas.Limits {
		return unlimited(func(l *schemas.Limits) { l.MaxExecutions, l.MaxConcurrentExecutions = n, most })
	}
	tests := []struct {
		name   string
		limits schemas.Limits
		codes  map[int]int
		used   int64
	}{
		{"quota of 50", quota(schemas.LimitOf(50), schemas.Unlimited), map[int]int{0: 50, 9001: 450}, 50},
		{"concurrency of 1 within a quota of 50", quota(schemas.LimitOf(50), schemas.LimitOf(1)), map[int]int{0: 1, 9002: 499}, 1},
		{"quota of 0", quota(schemas.LimitOf(0), schemas.Unlimited), map[int]int{9001: 500}, 0},
		{"concurrency of 0", quota(schemas.Unlimited, schemas.LimitOf(0)), map[int]int{9002: 500}, 0},
		{"no limit", quota(schemas.Unlimited, schemas.Unlimited), map[int]int{0: 500}, 500},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			codes, seen, units := map[int]int{}, map[string]bool{}, map[int64]bool{}
			for _, a := range runProcesses(t, tc.limits) {
				if a.Err != "" || seen[a.Execution] {
					t.Errorf("%s: error %q, answered before: %v", a.Execution, a.Err, seen[a.Execution])
				}
				seen[a.Execution] = true
				codes[a.Code]++
				if a.Code == 0 {
					units[a.Used] = true
				}
			}
			if !maps.Equal(codes, tc.codes) || len(seen) != 500 {
				t.Errorf("codes %v for %d executions, want %v for 500", codes, len(seen), tc.codes)
			}
			if len(units) != tc.codes[0] {
				t.Errorf("%d different units handed out, want %d: no two allows got the same one", len(units), tc.codes[0])
			}
			h := newHouse(t, tc.limits)
			if got := h.outstanding(t, "epoch-1"); got.Used != tc.used || got.Running != tc.used {
				t.Errorf("used %d, running %d, want %d of both", got.Used, got.Running, tc.used)
			}
		})
	}
}
