package devstack

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// startPatience bounds a start when the caller sets no deadline.
	startPatience = time.Minute
	// stopPatience is how long an orderly stop may take before a child is killed,
	// when the caller sets no deadline.
	stopPatience = 10 * time.Second
	readyPoll    = 10 * time.Millisecond
	// probePatience bounds one probe: whoever has our port may be another, who never answers.
	probePatience = 500 * time.Millisecond
	tailLines     = 12
)

//go:embed launch.sh
var launchScript string

// errPortTaken is a child's failure to listen because another process was faster.
var errPortTaken = errors.New("the port is taken")

// command is a program to run in a home.
type command struct {
	// name is the service, for messages and for the log file.
	name    string
	program string
	args    []string
	// stop is the signal that ends the program in an orderly way.
	stop syscall.Signal
}

// child is a running or ended program.
type child struct {
	command
	cmd *exec.Cmd
	// logPath holds what every child of this name wrote; ours begins at logStart.
	logPath  string
	logStart int64
	// ended is closed once the process was reaped; exit is set before.
	ended chan struct{}
	exit  error
}

// start runs a command as the home's owner, watched by the home's guard.
func (h *home) start(c command) (*child, error) {
	logPath := h.path(c.name + ".log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", c.name, err)
	}
	defer func() { _ = log.Close() }()
	end, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("find the end of the log of %s: %w", c.name, err)
	}
	arguments := append([]string{"-c", launchScript, "headroom-launch", signalName(c.stop), c.program}, c.args...)
	cmd := exec.Command("/bin/sh", arguments...)
	cmd.Dir = h.dir
	cmd.Env = h.environment()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{h.guard.input}
	cmd.SysProcAttr = h.owner.attributes()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	started := &child{command: c, cmd: cmd, logPath: logPath, logStart: end, ended: make(chan struct{})}
	go func() {
		defer close(started.ended)
		started.exit = cmd.Wait()
		h.guard.forget(cmd.Process.Pid)
	}()
	return started, nil
}

// environment is what a service sees: no secret of ours, no PG… or REDIS… setting.
func (h *home) environment() []string {
	set := []string{"LC_ALL=C", "TZ=UTC", "HOME=" + h.dir, "TMPDIR=" + h.dir}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			set = append(set, name+"="+value)
		}
	}
	return set
}

// awaitReady returns when the probe answers without an error, and gives up when
// the child ends or the context does; the error then shows the child's last lines.
func (c *child) awaitReady(ctx context.Context, probe func(context.Context) error) error {
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		err := c.probe(ctx, probe)
		select {
		case <-c.ended:
			return c.failure(fmt.Errorf("%s ended (%w)", c.name, c.outcome()))
		default:
		}
		if err == nil {
			return nil
		}
		select {
		case <-c.ended:
		case <-ticker.C:
		case <-ctx.Done():
			return c.failure(fmt.Errorf("%s does not answer (%w): %w", c.name, err, context.Cause(ctx)))
		}
	}
}

func (c *child) probe(ctx context.Context, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	return probe(ctx)
}

// wait returns when the child has ended by itself, with an error unless it
// succeeded; the end of the context ends the child.
func (c *child) wait(ctx context.Context) error {
	select {
	case <-c.ended:
	case <-ctx.Done():
		return errors.Join(c.failure(fmt.Errorf("%s is not done: %w", c.name, context.Cause(ctx))), c.kill())
	}
	if c.exit != nil {
		return c.failure(fmt.Errorf("%s ended (%w)", c.name, c.exit))
	}
	return nil
}

// shutdown asks the child to end and waits, then kills it at the deadline, which is
// an error. A child that has ended is nothing to do.
func (c *child) shutdown(ctx context.Context) error {
	ctx, cancel := withPatience(ctx, stopPatience)
	defer cancel()
	if err := c.cmd.Process.Signal(c.stop); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(fmt.Errorf("signal %s: %w", c.name, err), c.kill())
	}
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("%s did not stop in time and was killed: %w", c.name, context.Cause(ctx)), c.kill())
	}
}

// kill ends the child at once, as a crash would, and waits until it is gone. Those
// that it started end with it where the system names them, which Linux does;
// elsewhere PostgreSQL's sessions notice and follow.
func (c *child) kill() error {
	started := childrenOf(c.cmd.Process.Pid)
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", c.name, err)
	}
	for _, pid := range started {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have noticed and be gone
	}
	<-c.ended
	return nil
}

// childrenOf names the processes that a process has started and that run.
func childrenOf(pid int) []int {
	names, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	var pids []int
	for name := range strings.FieldsSeq(string(names)) {
		if child, err := strconv.Atoi(name); err == nil {
			pids = append(pids, child)
		}
	}
	return pids
}

func (c *child) outcome() error {
	if c.exit != nil {
		return c.exit
	}
	return errors.New("exit status 0")
}

// failure adds the child's last lines to an error, and says so when they speak of
// a taken port.
func (c *child) failure(err error) error {
	output := c.output()
	if bytes.Contains(output, []byte("ddress already in use")) {
		err = fmt.Errorf("%w: %w", errPortTaken, err)
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	return fmt.Errorf("%w; its last lines:\n%s", err, strings.Join(lines[max(0, len(lines)-tailLines):], "\n"))
}

// output is what this child wrote so far; an unreadable log shows as its error.
func (c *child) output() []byte {
	content, err := os.ReadFile(c.logPath)
	if err != nil {
		return []byte(err.Error())
	}
	return content[min(c.logStart, int64(len(content))):]
}

func withPatience(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, patience)
}

// signalName is what the shell's kill takes.
func signalName(signal syscall.Signal) string {
	if signal == syscall.SIGINT {
		return "INT"
	}
	return "TERM"
}
