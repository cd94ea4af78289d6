package devstack_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headroomhq/headroom/cmd/headroom/devstack"
)

const (
	parentDir = "DEVSTACK_TEST_DIR"
	patience  = 30 * time.Second

	// modeAbrupt leaves signals to their default: they end the process.
	modeAbrupt = "abrupt"
	// modeOrderly stops the stack on SIGINT and SIGTERM.
	modeOrderly = "orderly"
	// modeForgetful exits by itself without a Stop.
	modeForgetful = "forgetful"
)

// parent is the body of a process that starts every service, prints "ready" and
// then ends in the way of its mode.
func parent(mode, dir string, output io.Writer) error {
	signals := make(chan os.Signal, 1)
	if mode == modeOrderly {
		signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	}
	ctx := context.Background()
	stack, err := devstack.Start(ctx, devstack.Options{Dir: dir, Postgres: true, Redis: true, NATS: true})
	if err != nil {
		return err
	}
	fmt.Fprintln(output, "ready")
	if mode == modeForgetful {
		return nil
	}
	<-signals
	if err := answers(ctx, stack); err != nil {
		return fmt.Errorf("after the signal, before the stop: %w", err)
	}
	fmt.Fprintln(output, "answering")
	return stack.Stop(ctx)
}

// process is a parent under test, in a process group of its own.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	dir   string
}

func startParent(t *testing.T, mode string) *process {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(executable), dir: enterable(t)}
	p.cmd.Env = append(os.Environ(), parentMode+"="+mode, parentDir+"="+p.dir)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(output)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return p
}

// expect reads the next line that the parent prints.
func (p *process) expect(t *testing.T, want string) {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("the parent ended before it printed %q", want)
	}
	if got := p.lines.Text(); got != want {
		t.Fatalf("the parent printed %q, want %q", got, want)
	}
}

// enterable is a temporary directory that every user can enter.
func enterable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, open := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(open, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// alive is one line of the system's process table.
type alive struct {
	pid, parent string
	arguments   string
}

// processes is the process table without what has ended and waits to be reaped.
func processes(t *testing.T) []alive {
	t.Helper()
	table, err := exec.Command("ps", "-axww", "-o", "pid=", "-o", "ppid=", "-o", "stat=", "-o", "args=").Output()
	if err != nil {
		t.Fatalf("read the process table: %v", err)
	}
	var all []alive
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || strings.HasPrefix(fields[2], "Z") {
			continue
		}
		all = append(all, alive{pid: fields[0], parent: fields[1], arguments: strings.Join(fields[3:], " ")})
	}
	return all
}

// below lists what descends from a process.
func below(t *testing.T, pid int) []alive {
	t.Helper()
	all := processes(t)
	family := map[string]bool{fmt.Sprint(pid): true}
	var found []alive
	for grown := true; grown; {
		grown = false
		for _, one := range all {
			if family[one.parent] && !family[one.pid] {
				family[one.pid], grown = true, true
				found = append(found, one)
			}
		}
	}
	return found
}

// eventually polls what the system shows until the check finds no fault.
func eventually(t *testing.T, fault func() string) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		found := fault()
		if found == "" {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("after %v: %s", patience, found)
		}
	}
}

// assertNothingLeft waits until no process of the list lives, none names the
// directory, and the directory is empty.
func assertNothingLeft(t *testing.T, dir string, family []alive) {
	t.Helper()
	eventually(t, func() string {
		known := map[string]bool{}
		for _, one := range family {
			known[one.pid] = true
		}
		for _, one := range processes(t) {
			if known[one.pid] || strings.Contains(one.arguments, dir) {
				return fmt.Sprintf("process %s is left: %s", one.pid, one.arguments)
			}
		}
		left, err := os.ReadDir(dir)
		if err != nil {
			return err.Error()
		}
		if len(left) > 0 {
			return fmt.Sprintf("%s is left in %s", left[0].Name(), dir)
		}
		return ""
	})
}
