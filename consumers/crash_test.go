package consumers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// workerVariable makes the test binary a process that consumes until its
// standard input ends, or until the crash point that HEADROOM_CRASH_AT names.
const workerVariable = "HEADROOM_TEST_WORKER"

// crashBatch makes several batches of a test's messages.
func crashBatch(o *consumers.Options) { o.BatchSize, o.Workers = 8, 1 }

func work(getenv func(string) string, until io.Reader, log io.Writer) int {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, until)
		cancel()
	}()
	if err := consume(ctx, getenv, slog.New(slog.NewTextHandler(log, nil))); err != nil {
		fmt.Fprintln(log, err)
		return 1
	}
	return 0
}

func consume(ctx context.Context, getenv func(string) string, log *slog.Logger) error {
	nc, err := nats.Connect(getenv("NATS"))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, getenv("POSTGRES"))
	if err != nil {
		return err
	}
	defer pool.Close()
	address, err := redis.ParseURL(getenv("REDIS"))
	if err != nil {
		return err
	}
	client := redis.NewClient(address)
	defer func() { _ = client.Close() }()
	plans := subscriptions.NewCache(subscriptions.NewStore(pool, subscriptions.StoreOptions{}).PlanInfo, subscriptions.CacheOptions{})
	store := ledger.New(pool)
	o := consumers.Options{
		NATS: nc, JetStream: js, Ledger: store, Log: log,
		Enforcer: enforcement.New(enforcement.Options{Redis: client, Plans: plans, Usage: store}),
	}
	crashBatch(&o)
	made, err := consumers.New(o)
	if err != nil {
		return err
	}
	return made.Run(ctx)
}

// buildWorker compiles this package's tests with the crash points in.
func buildWorker(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "worker")
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", "crashpoints", "-o", binary, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("build the worker: %v\n%s", err, out)
	}
	return binary
}

// crash runs a worker until it is killed at the point.
func (w *whole) crash(t *testing.T, binary, point string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	worker := exec.CommandContext(ctx, binary)
	worker.Env = append(os.Environ(), workerVariable+"=1", "HEADROOM_CRASH_AT="+point+":2",
		"NATS="+schematest.NATSURL(t), "POSTGRES="+schematest.PostgresURL(t), "REDIS="+schematest.RedisURL(t))
	var log strings.Builder
	worker.Stderr = &log
	stdin, err := worker.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	var exit *exec.ExitError
	err = worker.Run()
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL || ctx.Err() != nil {
		t.Fatalf("the worker was not killed at %s: %v, %v\n%s", point, err, ctx.Err(), log.String())
	}
}

// hurry makes the server deliver again soon what a killed worker had.
func (w *whole) hurry() {
	w.Helper()
	for _, spec := range w.topology.Consumers() {
		spec.Config.AckWait = 500 * time.Millisecond
		if _, err := w.js.UpdateConsumer(context.Background(), spec.Stream, spec.Config); err != nil {
			w.Fatal(err)
		}
	}
}

// finish consumes until nothing is left of a kind.
func (w *whole) finish(kind string) {
	w.Helper()
	r := w.start(w.enforcer, w.keep, crashBatch)
	w.settled(kind)
	w.folded()
	w.halt(r)
}

func TestAKillAtAnyStepChangesNoDecision(t *testing.T) {
	t.Parallel()
	binary := buildWorker(t)
	for kind, steps := range map[string][]string{
		"requested": {"pulled", "decided", "publishing", "sent", "published", "settling", "settled"},
		"completed": {"pulled", "decided", "settling", "settled"},
	} {
		for _, step := range steps {
			t.Run(kind+" "+step, func(t *testing.T) {
				t.Parallel()
				surviveKill(t, binary, kind+"."+step)
			})
		}
	}
}

// surviveKill has 60 executions asked for and completed on a quota of 40, with a
// process killed at the point on the way.
func surviveKill(t *testing.T, binary, point string) {
	const asked, quota = 60, 40
	w := newWhole(t)
	w.hurry()
	for i := range asked {
		w.request("limited", fmt.Sprintf("x%02d", i))
	}
	if strings.HasPrefix(point, "requested.") {
		w.crash(t, binary, point)
	}
	w.finish("requested")
	decided := make(map[string]int)
	codes := make(map[int]int)
	for _, d := range w.decisions(asked) {
		decided[d.ExecutionID]++
		codes[d.Code]++
	}
	if diff := cmp.Diff(map[int]int{0: quota, 9001: asked - quota}, codes); diff != "" || len(decided) != asked {
		t.Fatalf("%d executions decided; codes (-want +got):\n%s", len(decided), diff)
	}
	for _, d := range w.decisions(asked) {
		if d.Allowed {
			w.complete("limited", d.ExecutionID, schemas.OutcomeSucceeded)
		}
	}
	if strings.HasPrefix(point, "completed.") {
		w.crash(t, binary, point)
	}
	w.finish("completed")
	redis, folded := w.outstanding("limited")
	if redis.Used != quota || redis.Running != 0 || folded.Used != quota || len(folded.Leases) != 0 {
		t.Errorf("Redis has used %d, running %d, the ledger %d and %d leases, want %d, 0, %d, 0",
			redis.Used, redis.Running, folded.Used, len(folded.Leases), quota, quota)
	}
	if n := w.count(schemas.StreamDecisions); n != asked {
		t.Errorf("%d decisions stored, want %d", n, asked)
	}
}
