package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// jobVariable carries a job to a process that a test starts of its own binary.
const jobVariable = "HEADROOM_API_TEST_JOB"

// job is what one process asks at its own door: executions First to First+Count-1, all at once.
type job struct {
	NATS, Redis  string
	At           time.Time
	Limits       schemas.Limits
	First, Count int
	// Kill is when the process kills itself: "decided" before anything is published,
	// "published" before anybody is answered, empty for never.
	Kill string
}

func worker(text string, out io.Writer) int {
	var j job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = j.work(out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (j job) work(out io.Writer) error {
	conn, err := nats.Connect(j.NATS)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	address, err := redis.ParseURL(j.Redis)
	if err != nil {
		return err
	}
	client := redis.NewClient(address)
	defer client.Close()
	o, closeAll, err := optionsOver(js, enforcement.New(enforcement.Options{
		Redis: client, Plans: &plans{info: planOf(j.Limits, j.At)}, Usage: nothing{}, LeaseGrace: 5 * time.Minute,
	}))
	if err != nil {
		return err
	}
	defer closeAll()
	o.Decisions = suicidal{step: j.Kill, inner: o.Decisions}
	door := api.NewExecutions(o)
	answers := make([]schemas.DecisionMade, j.Count)
	faults := make([]error, j.Count)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() { answers[i], faults[i] = door.Admit(context.Background(), j.asks(i)) })
	}
	wait.Wait()
	for _, err := range faults {
		if err != nil {
			return err
		}
	}
	return json.NewEncoder(out).Encode(answers)
}

// asks is the i-th request of a process.
func (j job) asks(i int) enforcement.Request {
	return asking(fmt.Sprintf("x%d", j.First+i), fmt.Sprintf("e%d", j.First+i))
}

// suicidal kills its process at a step.
type suicidal struct {
	step  string
	inner decisionWriter
}

func (s suicidal) Write(ctx context.Context, decisions []schemas.OutgoingDecision) []schemas.WrittenDecision {
	if s.step == "decided" {
		kill()
	}
	written := s.inner.Write(ctx, decisions)
	if s.step == "published" {
		kill()
	}
	return written
}

func kill() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// start is a process that does a job; wait for it.
func (j job) start(t *testing.T) (process *exec.Cmd, said *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	j.NATS, j.Redis = schematest.NATSURL(t), schematest.RedisURL(t)
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	said = &bytes.Buffer{}
	process = exec.CommandContext(t.Context(), self)
	process.Env = append(os.Environ(), jobVariable+"="+string(text))
	process.Stdout, process.Stderr = said, os.Stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	return process, said
}

func TestTwoProcessesNeverPassALimit(t *testing.T) {
	t.Parallel()
	bounds := limits(ptr[int64](60), nil)
	h := newHouse(t, bounds)
	j := job{At: time.Now(), Limits: bounds, Count: 250}
	first, said := j.start(t)
	j.First = 250
	second, saidToo := j.start(t)
	codes := map[int]int{}
	for process, output := range map[*exec.Cmd]*bytes.Buffer{first: said, second: saidToo} {
		if err := process.Wait(); err != nil {
			t.Fatal(err)
		}
		var answers []schemas.DecisionMade
		if err := json.Unmarshal(output.Bytes(), &answers); err != nil {
			t.Fatal(err)
		}
		for _, d := range answers {
			codes[d.Code]++
		}
	}
	if diff := cmp.Diff(map[int]int{0: 60, 9001: 440}, codes); diff != "" {
		t.Errorf("answers by code (-want +got):\n%s", diff)
	}
	if stored := h.decisions(); len(stored) != 500 || allows(stored) != 60 {
		t.Errorf("the stream has %d decisions that admit %d, want 500 and 60", len(stored), allows(stored))
	}
}

func TestAKilledDoorsAnswersAreGivenAgain(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"decided", "published"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			bounds := limits(ptr[int64](5), nil)
			h := newHouse(t, bounds)
			j := job{At: time.Now(), Limits: bounds, Count: 9, Kill: step}
			process, _ := j.start(t)
			err := process.Wait()
			if state := process.ProcessState.Sys().(syscall.WaitStatus); !state.Signaled() {
				t.Fatalf("the process was not killed: %v", err)
			}
			charged := h.outstanding().Used
			if charged == 0 {
				t.Error("nothing was decided before the kill")
			}
			codes := map[int]int{}
			for i := range j.Count {
				d, err := h.Admit(t.Context(), j.asks(i))
				if err != nil {
					t.Fatal(err)
				}
				codes[d.Code]++
			}
			if diff := cmp.Diff(map[int]int{0: 5, 9001: 4}, codes); diff != "" {
				t.Errorf("answers by code after the kill (-want +got):\n%s", diff)
			}
			if got := h.outstanding(); got.Used != 5 || got.Running != 5 {
				t.Errorf("%d used, %d run, want 5 of both", got.Used, got.Running)
			}
			if stored := h.decisions(); len(stored) != 9 || allows(stored) != 5 {
				t.Errorf("the stream has %d decisions that admit %d, want 9 and 5", len(stored), allows(stored))
			}
		})
	}
}
