package consumers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// workerVariable makes the test binary a process that consumes until its
// standard input ends, or until it is killed at the step that the variable names:
// <kind> <step> <n-th passing>.
const workerVariable = "HEADROOM_TEST_WORKER"

// crashBatch makes several batches of a test's messages.
func crashBatch(o *consumers.Options) { o.BatchSize, o.Workers = 8, 1 }

// untilKilled is a process of the test binary that works until its standard input
// ends, or until the work kills it. It returns the exit code.
func untilKilled(work func(context.Context, func(string) string, *slog.Logger) error, until io.Reader, log io.Writer) int {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, until)
		cancel()
	}()
	if err := work(ctx, os.Getenv, slog.New(slog.NewTextHandler(log, nil))); err != nil {
		fmt.Fprintln(log, err)
		return 1
	}
	return 0
}

func consume(ctx context.Context, getenv func(string) string, log *slog.Logger) error {
	nc, js, err := dial(getenv("NATS"))
	if err != nil {
		return err
	}
	defer nc.Close()
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
	known := subscriptions.NewStore(pool, subscriptions.StoreOptions{DenyUnknown: true})
	plans := subscriptions.NewCache(known.PlanInfo, subscriptions.CacheOptions{})
	store := ledger.New(pool)
	o := consumers.Options{
		NATS: nc, JetStream: js, Ledger: store, Renewals: known, Plans: plans, Log: log,
		Enforcer: enforcement.New(enforcement.Options{Redis: client, Plans: plans, Usage: store}),
	}
	crashBatch(&o)
	made, err := consumers.New(o)
	if err != nil {
		return err
	}
	var kind, step string
	var n int64
	if _, err := fmt.Sscan(getenv(workerVariable), &kind, &step, &n); err != nil {
		return err
	}
	made.KillAt(kind, step, n)
	return made.Run(ctx)
}

// crash runs a worker until it is killed as it passes the step for the n-th time.
func (w *whole) crash(kind, step string, n int) {
	w.Helper()
	self, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	worker := exec.CommandContext(ctx, self)
	worker.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", workerVariable, kind, step, n),
		"NATS="+schematest.NATSURL(w.TB), "POSTGRES="+schematest.PostgresURL(w.TB), "REDIS="+schematest.RedisURL(w.TB))
	var log strings.Builder
	worker.Stderr = &log
	stdin, err := worker.StdinPipe()
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	var exit *exec.ExitError
	err = worker.Run()
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL || ctx.Err() != nil {
		w.Fatalf("the worker was not killed at %s %s: %v, %v\n%s", kind, step, err, ctx.Err(), log.String())
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

// What is asked for in each crash: executions on a quota, progress of the allowed ones
// that each goes over a limit, executions of workspaces nobody knows, and nonsense.
const (
	crashAsked     = 60
	crashQuota     = 40
	crashStrangers = 10
	crashNonsense  = 10
)

func TestAKillAtAnyStepChangesNoDecision(t *testing.T) {
	t.Parallel()
	all := []string{"requested", "progressed", "completed"}
	for step, kinds := range map[string][]string{
		"pulled": all, "decided": all, "settling": all, "settled": all,
		"publishing": all[:2], "sent": all[:2], "published": all[:2],
		"withdrawn": all[:1], "buried": all[:1],
		"folding": {"ledger"}, "folded": {"ledger"},
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			surviveKills(t, step, kinds)
		})
	}
}

// surviveKills has executions asked for, reported on and completed, with a process
// killed at the step of each kind on the way.
func surviveKills(t *testing.T, step string, kinds []string) {
	w := newWhole(t, subscriptions.StoreOptions{DenyUnknown: true})
	w.hurry()
	w.askForAll()
	if kinds[0] == "ledger" {
		w.crash("ledger", step, 1)
	}
	w.through("requested", step, kinds)
	w.expectDecisions(map[int]int{0: crashQuota, 9001: crashAsked - crashQuota, 9008: crashStrangers})
	allowed := w.allowed()
	tasks := int64(60)
	for _, id := range allowed {
		w.publish(w.topology.Progressed("limited"), body(w.world, "step-"+id,
			schemas.ExecutionProgressed{WorkspaceID: "limited", ExecutionID: id, Tasks: &tasks}))
	}
	w.through("progressed", step, kinds)
	for _, id := range allowed {
		w.complete("limited", id, schemas.OutcomeSucceeded)
	}
	w.through("completed", step, kinds)

	w.expectDecisions(map[int]int{0: crashQuota, 9001: crashAsked - crashQuota, 9008: crashStrangers, 9003: crashQuota})
	redis, folded := w.outstanding("limited")
	if redis.Used != crashQuota || redis.Running != 0 || folded.Used != crashQuota || len(folded.Leases) != 0 {
		t.Errorf("Redis has used %d, running %d, the ledger %d and %d leases, want %d, 0, %d, 0",
			redis.Used, redis.Running, folded.Used, len(folded.Leases), crashQuota, crashQuota)
	}
	if got, want := w.denials("limited"), int64(crashAsked-crashQuota+crashQuota); got != want {
		t.Errorf("the ledger counts %d denials, want %d", got, want)
	}
	if n := w.count(schemas.StreamDeadLetters); n != crashNonsense {
		t.Errorf("%d dead letters, want %d", n, crashNonsense)
	}
}

func (w *whole) askForAll() {
	w.Helper()
	for i := range crashAsked {
		w.request("limited", fmt.Sprintf("x%02d", i))
		if i < crashStrangers {
			w.request("stranger", fmt.Sprintf("y%02d", i))
		}
		if i < crashNonsense {
			w.publish(w.topology.Requested("limited"), []byte("nonsense"))
		}
	}
}

// through works off what is stored of a kind; a first process is killed at the
// step, if it is one of this kind.
func (w *whole) through(kind, step string, kinds []string) {
	w.Helper()
	if slices.Contains(kinds, kind) {
		w.crash(kind, step, 2)
	}
	w.finish(kind)
}

// expectDecisions checks how many decisions of each code are stored, and that each
// is stored once.
func (w *whole) expectDecisions(codes map[int]int) {
	w.Helper()
	got, ids := make(map[int]int), make(map[string]bool)
	for _, d := range w.decisions(0) {
		got[d.Code]++
		if ids[d.DecisionID] {
			w.Errorf("decision %s of execution %s is stored twice", d.DecisionID, d.ExecutionID)
		}
		ids[d.DecisionID] = true
	}
	if diff := cmp.Diff(codes, got); diff != "" {
		w.Fatalf("decisions by code (-want +got):\n%s", diff)
	}
}

// allowed is the executions that may run.
func (w *whole) allowed() []string {
	w.Helper()
	var ids []string
	for _, d := range w.decisions(0) {
		if d.Allowed {
			ids = append(ids, d.ExecutionID)
		}
	}
	return ids
}
