package guardtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/headroomhq/headroom/enforcement/guard"
)

// job is one race.
type job struct {
	Organization, Counter    string
	Limit, Requested, Guards int64
}

// result is what came of it in one process.
type result struct {
	Allowed, Denied int64
	// Faults are errors that are no denials.
	Faults []string
}

// race runs the job's guards all at once.
func (r *rig[Tx]) race(ctx context.Context, j job) result {
	r.plan.set(j.Limit)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	errs := make([]error, j.Guards)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = r.guard(ctx, r.request(j.Requested)) })
	}
	all.Wait()
	var got result
	for _, err := range errs {
		switch {
		case err == nil:
			got.Allowed++
		case exceeded(err):
			got.Denied++
		default:
			got.Faults = append(got.Faults, err.Error())
		}
	}
	return got
}

// Work is what another process does for the suite: it runs the races that in tells
// it, and answers on out. It returns when in ends.
func Work[Tx any](ctx context.Context, b Bench[Tx], in io.Reader, out io.Writer) error {
	r := &rig[Tx]{Bench: b, plan: newPlan()}
	var err error
	if r.client, err = guard.New(guard.Options[Tx]{Provider: r.plan, Lock: b.Lock}); err != nil {
		return err
	}
	answers := json.NewEncoder(out)
	if err := answers.Encode(result{}); err != nil { // it is ready
		return fmt.Errorf("tell the test that this process is ready: %w", err)
	}
	jobs := json.NewDecoder(in)
	for {
		var j job
		if err := jobs.Decode(&j); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read what to do: %w", err)
		}
		r.organization, r.counter = j.Organization, j.Counter
		if err := answers.Encode(r.race(ctx, j)); err != nil {
			return fmt.Errorf("answer the test: %w", err)
		}
	}
}

// acrossProcesses: what holds in one process holds for two on one database.
func acrossProcesses[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{})
	workers := []*worker{startWorker(t, h.Process(t, r.Address)), startWorker(t, h.Process(t, r.Address))}
	for _, j := range races() {
		r.fresh()
		j.Organization, j.Counter = r.organization, r.counter
		for _, w := range workers {
			w.does(j)
		}
		r.judge(j, workers[0].answers(), workers[1].answers())
	}
}

// worker is another process.
type worker struct {
	t       testing.TB
	jobs    *json.Encoder
	results chan result
}

// startWorker returns when the process is ready.
func startWorker(t testing.TB, cmd *exec.Cmd) *worker {
	t.Helper()
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		t.Fatalf("prepare another process: %v", err)
	}
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start another process: %v", err)
	}
	w := &worker{t: t, jobs: json.NewEncoder(in), results: make(chan result, 1)}
	go w.read(out)
	t.Cleanup(func() {
		_ = in.Close()
		for range w.results { // Wait closes what is being read
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("another process: %v", err)
		}
	})
	w.answers()
	return w
}

func (w *worker) read(out io.Reader) {
	defer close(w.results)
	answers := json.NewDecoder(bufio.NewReader(out))
	for {
		var got result
		if answers.Decode(&got) != nil {
			return
		}
		w.results <- got
	}
}

func (w *worker) does(j job) {
	w.t.Helper()
	if err := w.jobs.Encode(j); err != nil {
		w.t.Fatalf("tell another process what to do: %v", err)
	}
}

func (w *worker) answers() result {
	w.t.Helper()
	return await(w.t, w.results, "another process")
}
