package consumers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// watchdogVariable makes the test binary a process that watches until its standard input
// ends, or until it is killed at the step that the variable names: <step> <n-th passing>.
const watchdogVariable = "HEADROOM_TEST_WATCHDOG"

func watchdogProcess(ctx context.Context, getenv func(string) string, log *slog.Logger) error {
	var step string
	var passing int64
	if _, err := fmt.Sscan(getenv(watchdogVariable), &step, &passing); err != nil {
		return err
	}
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
	w, err := consumers.NewWatchdog(consumers.WatchdogOptions{
		NATS: nc, JetStream: js, Ledger: ledger.New(pool), Leases: &held{}, Grace: -1, BatchSize: 10, Log: log,
	})
	if err != nil {
		return err
	}
	w.KillAt(step, passing)
	return w.Run(ctx)
}

// crashWatchdog runs a watchdog until it is killed as it passes the step for the n-th time.
func (b *books) crashWatchdog(step string, n int) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	process := exec.CommandContext(ctx, self)
	process.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", watchdogVariable, step, n),
		"NATS="+schematest.NATSURL(b.TB), "POSTGRES="+schematest.PostgresURL(b.TB))
	var log strings.Builder
	process.Stderr = &log
	stdin, err := process.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	var exit *exec.ExitError
	err = process.Run()
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL || ctx.Err() != nil {
		b.Fatalf("the watchdog was not killed at %s: %v, %v\n%s", step, err, ctx.Err(), log.String())
	}
}

func TestAKillOfTheWatchdogAtAnyStepLosesAndRepeatsNoStop(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"publishing", "sent", "published", "noted"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			b := newBooks(t)
			b.start(&judge{}, b.keep)
			var want []string
			for i := range 45 {
				b.admitted("acme", fmt.Sprintf("x%02d", i), time.Hour)
				want = append(want, fmt.Sprintf("acme/x%02d", i))
			}
			b.folded()
			b.crashWatchdog(step, 1)
			b.crashWatchdog(step, 2)
			if n := untold(b.pool); n == 0 {
				t.Error("all was told before the kills were over, so they show less")
			}
			b.watch()
			b.eventually("all are told", func() bool { return untold(b.pool) == 0 })
			b.expectTold(want...)
		})
	}
}

// A stream that no longer remembers the message ids is what a restart after more than an
// hour finds: the ledger knows what was told before.
func TestAWatchdogThatComesBackLateRepeatsNoStop(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	r := b.start(&judge{}, b.keep)
	var want []string
	for i := range 8 {
		b.admitted("acme", fmt.Sprintf("x%d", i), time.Hour)
		want = append(want, fmt.Sprintf("acme/x%d", i))
	}
	b.folded()
	b.crashWatchdog("published", 1)
	if got := b.told(); !slices.Equal(got, want) || untold(b.pool) != len(want) {
		t.Fatalf("before the return %q are told and %d not noted", got, untold(b.pool))
	}
	b.folded()
	b.halt(r)
	forgetMessageIDs(b)
	b.start(&judge{}, b.keep)
	b.watch()
	b.eventually("all are noted", func() bool { return untold(b.pool) == 0 })
	b.expectTold(want...)
}

// forgetMessageIDs has the decisions stream forget the ids of what it holds.
func forgetMessageIDs(b *books) {
	b.Helper()
	ctx := context.Background()
	stream, err := b.js.Stream(ctx, b.topology.Stream(schemas.StreamDecisions))
	if err != nil {
		b.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.Duplicates = 100 * time.Millisecond
	if _, err := b.js.UpdateStream(ctx, config); err != nil {
		b.Fatal(err)
	}
	last := denied(asking("last"), 9001, "All used.", time.Now())
	again := func() bool {
		ack, err := b.js.Publish(ctx, b.topology.Decision("acme"), body(b.world, last.DecisionID, last), jetstream.WithMsgID(last.DecisionID))
		if err != nil {
			b.Fatal(err)
		}
		return !ack.Duplicate
	}
	if !again() {
		b.Fatal("the stream has it already")
	}
	b.eventually("the stream forgets", again)
}
