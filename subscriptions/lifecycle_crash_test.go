package subscriptions_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// lifecycleVariable makes the test binary a process that renews in the database of
// this address, until its standard input ends or it is killed.
const lifecycleVariable = "HEADROOM_TEST_LIFECYCLE"

func lifecycleProcess(address string, until io.Reader, log io.Writer) int {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, until)
		cancel()
	}()
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		fmt.Fprintln(log, err)
		return 1
	}
	defer pool.Close()
	l := subscriptions.NewLifecycle(subscriptions.NewStore(pool, subscriptions.StoreOptions{}), subscriptions.LifecycleOptions{
		Glance: 20 * time.Millisecond, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err := l.Run(ctx); err != nil {
		fmt.Fprintln(log, err)
		return 1
	}
	return 0
}

// worker is such a process.
type worker struct {
	*exec.Cmd
	log *bytes.Buffer
}

func startWorker(ctx context.Context, t *testing.T, address string) worker {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := worker{Cmd: exec.CommandContext(ctx, self), log: &bytes.Buffer{}}
	w.Env = append(os.Environ(), lifecycleVariable+"="+address)
	w.Stderr = w.log
	stdin, err := w.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close() })
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w worker) kill(t *testing.T) {
	t.Helper()
	if err := w.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := w.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the worker was not killed: %v\n%s", err, w.log.String())
	}
}

func TestKillsOfWorkersAndOfPostgresRenewNothingTwiceAndLeaveNothingOut(t *testing.T) {
	t.Parallel()
	const due, kills = 300, 5
	server := schematest.PostgresServer(t)
	pool, err := pgxpool.New(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := subscriptions.NewStore(pool, subscriptions.StoreOptions{})
	apply(t, s)
	manyDue(t, s, pool, due)
	execute(t, pool, `DELETE FROM outbox`)
	ctx, cancel := context.WithTimeout(t.Context(), 2*lifecyclePatience)
	defer cancel()

	left := due + 1
	for kill := range kills {
		workers := []worker{startWorker(ctx, t, server.URL()), startWorker(ctx, t, server.URL())}
		eventually(t, "some are renewed", func() bool {
			n := dueRows(pool)
			return n >= 0 && n < left-due/(3*kills)
		})
		if kill%2 == 1 {
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := server.Restart(ctx); err != nil {
				t.Fatal(err)
			}
		}
		for _, w := range workers {
			w.kill(t)
		}
		eventually(t, "Postgres answers", func() bool {
			left = dueRows(pool)
			return left >= 0
		})
		if left == 0 {
			t.Fatalf("nothing was left for the kill number %d", kill+1)
		}
	}
	last := startWorker(ctx, t, server.URL())
	eventually(t, "nothing is due", func() bool { return dueRows(pool) == 0 })
	last.kill(t)
	wantRenewedOnce(t, pool, due+1)
}

func TestTheWorkerSurvivesPostgres(t *testing.T) {
	t.Parallel()
	server := schematest.PostgresServer(t)
	pool, err := pgxpool.New(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := subscriptions.NewStore(pool, subscriptions.StoreOptions{})
	apply(t, s)
	log := &lines{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- subscriptions.NewLifecycle(s, subscriptions.LifecycleOptions{Glance: 20 * time.Millisecond, Log: log.log()}).Run(ctx)
	}()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is logged", func() bool { return log.with("level=WARN", "wait for the database") == 1 })
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it goes on", func() bool { return log.with("renewed again") == 1 })
	assignOver(t, s, pool)
	eventually(t, "it renews", func() bool {
		return count(t, pool, `SELECT count(*) FROM subscriptions WHERE kind = 'cycle'`) == 1
	})
	cancel()
	if err := <-ended; err != nil || log.with("level=WARN") != 1 {
		t.Errorf("ended with %v, and the log\n%s", err, log.text.String())
	}
}
