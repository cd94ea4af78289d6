package devstack_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/cmd/headroom/devstack"
)

func TestPostgresKeepsACommitOverAKill(t *testing.T) {
	t.Parallel()
	cluster, err := devstack.StartPostgres(t.Context(), devstack.PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopAtEnd(t, cluster) })
	run := func(statement string) {
		t.Helper()
		session, err := pgx.Connect(t.Context(), cluster.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = session.Close(t.Context()) }()
		if _, err := session.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	assertUnprivileged(t, cluster.PID())
	session, err := pgx.Connect(t.Context(), cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close(t.Context()) }()
	run("CREATE TABLE kept (id int)")
	before, address := cluster.PID(), cluster.URL()
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Exec(t.Context(), "SELECT 1"); err == nil {
		t.Error("a session answers after the kill")
	}
	if err := cluster.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	run("SELECT id FROM kept")
	if cluster.PID() == before || cluster.URL() != address {
		t.Errorf("process %d at %s became %d at %s; want another process at the same address", before, address, cluster.PID(), cluster.URL())
	}
	if err := cluster.Restart(t.Context()); err != nil {
		t.Errorf("restart a running server: %v", err)
	}
	run("SELECT id FROM kept")
}

func TestAServiceThatDoesNotStopIsKilled(t *testing.T) {
	t.Parallel()
	dir := enterable(t)
	server, err := devstack.StartRedis(t.Context(), devstack.RedisOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	assertUnprivileged(t, server.PID())
	if err := syscall.Kill(server.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := server.Stop(ctx); err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("stop of a server held still: %v; want that it was killed", err)
	}
	assertNothingLeft(t, dir, []alive{{pid: strconv.Itoa(server.PID())}})
	if err := server.Restart(t.Context()); !errors.Is(err, devstack.ErrStopped) {
		t.Errorf("restart after stop: %v, want %v", err, devstack.ErrStopped)
	}
}

func TestAFailedStartShowsTheServersLastLines(t *testing.T) {
	t.Parallel()
	dir := enterable(t)
	_, err := devstack.StartRedis(t.Context(), devstack.RedisOptions{Dir: dir, Databases: -1})
	if err == nil {
		t.Fatal("a server with -1 databases started")
	}
	for _, want := range []string{"start Redis: redis-server ended (exit status 1)", "databases -1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not contain %q:\n%v", want, err)
		}
	}
	assertNothingLeft(t, dir, nil)
}

func TestAStartGivenUpLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := enterable(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	go func() {
		_, err := devstack.Start(ctx, devstack.Options{Dir: dir, Postgres: true, Redis: true, NATS: true})
		result <- err
	}()
	eventually(t, func() string {
		if found, err := filepath.Glob(filepath.Join(dir, "headroom-postgres-*/data/base")); err != nil || len(found) == 0 {
			return "initdb makes no files"
		}
		return ""
	})
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the start was canceled", err)
	}
	assertNothingLeft(t, dir, nil)
}

func TestAnotherPortIsTriedWhenOneIsTaken(t *testing.T) {
	t.Parallel()
	var tried []int
	err := devstack.OnFreePort(t.Context(), func(port int) error {
		tried = append(tried, port)
		if len(tried) < 3 {
			return errors.Join(errors.New("ended"), devstack.ErrPortTaken)
		}
		return nil
	})
	if err != nil || len(tried) != 3 || tried[0] == tried[1] && tried[1] == tried[2] {
		t.Errorf("tried ports %v, error %v; want three tries and success", tried, err)
	}
}

func TestEachServiceRecognisesATakenPort(t *testing.T) {
	t.Parallel()
	starts := map[string]func(ctx context.Context, dir string, port int) error{
		"Redis": devstack.RedisOn, "PostgreSQL": devstack.PostgresOn, "NATS": devstack.NATSOn,
	}
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port, err := devstack.FreePort(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = listener.Close() }()
			dir := enterable(t)
			if err := start(t.Context(), dir, port); !errors.Is(err, devstack.ErrPortTaken) {
				t.Errorf("got %v, want that the port is taken", err)
			}
			assertNothingLeft(t, dir, nil)
		})
	}
}

// Not parallel: it sets TMPDIR.
func TestATemporaryDirectoryClosedToOthersIsNoObstacle(t *testing.T) {
	closed := filepath.Join(t.TempDir(), "with a blank")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", closed)
	server, err := devstack.StartRedis(t.Context(), devstack.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, server)
}

// assertUnprivileged finds that a service is not run by root, and by ourselves
// when we are not root.
func assertUnprivileged(t *testing.T, pid int) {
	t.Helper()
	out, err := exec.Command("ps", "-o", "uid=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		t.Fatalf("read the process table: %v", err)
	}
	uid, self := strings.TrimSpace(string(out)), os.Geteuid()
	if uid == "0" || self != 0 && uid != strconv.Itoa(self) {
		t.Errorf("process %d is run by user %s, and we are %d", pid, uid, self)
	}
}
