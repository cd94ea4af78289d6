package consumers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// relayVariable makes the test binary a process that relays until its standard input ends,
// or until it is killed at the step that the variable names: <step> <n-th passing>.
const relayVariable = "HEADROOM_TEST_RELAY"

func relayProcess(ctx context.Context, getenv func(string) string, log *slog.Logger) error {
	var step string
	var passing int64
	if _, err := fmt.Sscan(getenv(relayVariable), &step, &passing); err != nil {
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
	r, err := consumers.NewRelay(consumers.RelayOptions{NATS: nc, JetStream: js, Outbox: subscriptions.NewOutbox(pool), Log: log})
	if err != nil {
		return err
	}
	r.KillAt(step, passing)
	return r.Run(ctx)
}

// process starts a process that relays; the caller sees it killed.
func (n *newsroom) process(ctx context.Context, step string, passing int) (*exec.Cmd, *bytes.Buffer) {
	n.Helper()
	self, err := os.Executable()
	if err != nil {
		n.Fatal(err)
	}
	process := exec.CommandContext(ctx, self)
	process.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", relayVariable, step, passing),
		"NATS="+schematest.NATSURL(n.TB), "POSTGRES="+n.address)
	log := &bytes.Buffer{}
	process.Stderr = log
	stdin, err := process.StdinPipe()
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { _ = stdin.Close() })
	if err := process.Start(); err != nil {
		n.Fatal(err)
	}
	return process, log
}

func (n *newsroom) expectKilled(ctx context.Context, process *exec.Cmd, log *bytes.Buffer) {
	n.Helper()
	var exit *exec.ExitError
	err := process.Wait()
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL || ctx.Err() != nil {
		n.Fatalf("the relay was not killed: %v, %v\n%s", err, ctx.Err(), log.String())
	}
}

func TestAKillOfTheRelayAtAnyStepLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	const workspaces, each = 30, 4
	for _, step := range []string{"publishing", "sent", "published", "marked"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			n := newNewsroom(t)
			ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
			defer cancel()
			for passing := 1; passing <= 3; passing++ {
				if err := n.writers(ctx, workspaces, each); err != nil {
					t.Fatal(err)
				}
				process, log := n.process(ctx, step, passing)
				n.expectKilled(ctx, process, log)
			}
			if step == "published" && n.count(schemas.StreamPlans) == 0 {
				t.Error("nothing was published before the kills, so they show nothing")
			}
			n.relay()
			n.drained()
			n.expectAllOnce(3 * workspaces * each)
		})
	}
}

func TestKillsOfARelayBesideAnotherInALoopLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	const workspaces, each, kills = 40, 40, 6
	n := newNewsroom(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	n.relay()
	written := make(chan error, 1)
	go func() { written <- n.writers(ctx, workspaces, each) }()
	for kill := range kills {
		process, log := n.process(ctx, "published", 1000+kill)
		n.eventually("the process has a session", func() bool {
			sessions := 0
			err := n.pool.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`).Scan(&sessions)
			return err == nil && sessions == 2
		})
		before := n.count(schemas.StreamPlans)
		select {
		case err := <-written:
			written <- err // nothing more to come: the kill hits an idle relay
		default:
			n.eventually("something is published", func() bool { return n.count(schemas.StreamPlans) > before+3 || n.waiting() == 0 })
		}
		if err := process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		n.expectKilled(ctx, process, log)
		n.eventually("Postgres has noticed", func() bool {
			sessions := 0
			err := n.pool.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`).Scan(&sessions)
			return err == nil && sessions == 1
		})
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	n.drained()
	n.expectAllOnce(workspaces * each)
}

func openPool(t testing.TB, address string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
