package usage_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// jobVariable carries a job to a process that a test starts of its own binary.
const jobVariable = "HEADROOM_USAGE_TEST_JOB"

// job is what one process does: so many callers at once, each asking for one.
type job struct {
	Postgres string
	Callers  int
	// Once takes the door with a transaction of its own.
	Once bool
}

// outcome is what the callers of a process got.
type outcome struct {
	Used    []int64
	Refused int
	Faults  []string
}

func worker(text string, out io.Writer) int {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	pool, err := pgxpool.New(context.Background(), j.Postgres)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer pool.Close()
	plansFrom, err := pgxpool.New(context.Background(), j.Postgres)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer plansFrom.Close()
	store := subscriptions.NewStore(plansFrom, subscriptions.StoreOptions{})
	counters := usage.New(usage.Options{
		Pool: pool, Plans: kinded{subscriptions.NewCache(store.PlanInfo, subscriptions.CacheOptions{})},
	})
	var mu sync.Mutex
	var result outcome
	var wait sync.WaitGroup
	for range j.Callers {
		wait.Go(func() {
			balance, err := j.ask(counters, pool)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				result.Used = append(result.Used, balance.Used)
			case errors.As(err, new(*usage.QuotaExceeded)):
				result.Refused++
			default:
				result.Faults = append(result.Faults, err.Error())
			}
		})
	}
	wait.Wait()
	if err := json.NewEncoder(out).Encode(result); err != nil {
		return 1
	}
	return 0
}

func (j job) ask(counters *usage.Counters, pool *pgxpool.Pool) (balance usage.Balance, err error) {
	ctx := context.Background()
	if j.Once {
		return counters.ConsumeOnce(ctx, usage.Once{}, of("projects", 1))
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		balance, err = counters.Consume(ctx, tx, of("projects", 1))
		return err
	})
	return balance, err
}

// runProcesses asks 200 times for one, from four processes at once.
func runProcesses(t *testing.T, once bool) outcome {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(job{Postgres: schematest.PostgresURL(t), Callers: 50, Once: once})
	if err != nil {
		t.Fatal(err)
	}
	outputs := make([]bytes.Buffer, 4)
	var wait sync.WaitGroup
	for i := range outputs {
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
	var all outcome
	for i := range outputs {
		var some outcome
		if err := json.Unmarshal(outputs[i].Bytes(), &some); err != nil {
			t.Fatalf("process %d said %q: %v", i, outputs[i].String(), err)
		}
		all.Used, all.Faults = append(all.Used, some.Used...), append(all.Faults, some.Faults...)
		all.Refused += some.Refused
	}
	return all
}

func TestFourProcessesConsumeNoMoreThanThereIs(t *testing.T) {
	t.Parallel()
	for name, once := range map[string]bool{"in the caller's transaction": false, "by the door": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, plan("free", features{"projects": 50}))
			got := runProcesses(t, once)
			if len(got.Used) != 50 || got.Refused != 150 || len(got.Faults) > 0 {
				t.Errorf("%d consumed and %d refused, want 50 and 150; faults: %q", len(got.Used), got.Refused, got.Faults)
			}
			slices.Sort(got.Used)
			if units := slices.Compact(got.Used); len(units) != 50 || units[0] != 1 || units[49] != 50 {
				t.Errorf("the callers got the units %v, want 1 to 50", units)
			}
			h.wantUsed(t, "projects", 50)
		})
	}
}
