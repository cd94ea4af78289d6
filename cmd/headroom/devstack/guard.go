package devstack

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// guardPatience bounds the wait for a guard: more than it may take itself.
const guardPatience = 15 * time.Second

//go:embed guard.sh
var guardScript string

// guard is the process that cleans a directory up when we no longer can. It
// notices our end by the end of its input, whose write end only we hold.
type guard struct {
	cmd   *exec.Cmd
	input *os.File
}

func startGuard(dir string) (*guard, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open the guard's pipe: %w", err)
	}
	defer func() { _ = read.Close() }()
	cmd := exec.Command("/bin/sh", "-c", guardScript, "headroom-guard", dir)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	cmd.Stdin = read
	// Its own group: neither Ctrl-C at the terminal nor a kill of our group reaches it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		_ = write.Close()
		return nil, fmt.Errorf("start the guard of %s with /bin/sh: %w", dir, err)
	}
	return &guard{cmd: cmd, input: write}, nil
}

// forget withdraws a process that has been reaped: its id may now be another's.
// A guard that is gone has nothing to forget, so the write may fail.
func (g *guard) forget(pid int) {
	_, _ = fmt.Fprintf(g.input, "forget %d\n", pid)
}

// close dismisses the guard and waits for it. What it still watches, it stops;
// what is left of the directory, it removes.
func (g *guard) close() error {
	if err := g.input.Close(); err != nil {
		return fmt.Errorf("close the guard's pipe: %w", err)
	}
	impatience := time.AfterFunc(guardPatience, func() { _ = g.cmd.Process.Kill() })
	defer impatience.Stop()
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("wait for the guard: %w", err)
	}
	return nil
}
