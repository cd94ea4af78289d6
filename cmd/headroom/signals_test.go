package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// These tests run the program as a process, because only a process has signals.

func TestTheFirstSignalEndsServeInOrder(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := startServe(t)
		p.signal(signal)
		if status := p.status(); status != exitDone {
			t.Errorf("status %d after %s, want %d:\n%s", status, signal, exitDone, p.log)
		}
		p.log.await(t, "stopped")
	}
}

func TestAMisspeltSettingIsWarnedOf(t *testing.T) {
	t.Parallel()
	p := startServe(t, "HEADROOM_WORKRES=3")
	warning := p.log.await(t, "setting has no effect")
	if warning["variable"] != "HEADROOM_WORKRES" || warning["reason"] != "no such setting; did you mean HEADROOM_WORKERS?" {
		t.Errorf("the warning is %v", warning)
	}
	p.signal(syscall.SIGTERM)
	if status := p.status(); status != exitDone {
		t.Errorf("status %d, want %d", status, exitDone)
	}
}

func TestAMisspeltSettingStandsBesideTheFaults(t *testing.T) {
	t.Parallel()
	var stderr strings.Builder
	cmd := headroomCommand(t.Context(), t, "serve")
	cmd.Env = append(cmd.Env, "HEADROOM_WORKRES=3", "HEADROOM_BATCH_SIZE=none")
	cmd.Stderr = &stderr
	if status := statusOf(cmd.Run()); status != exitUsage {
		t.Errorf("status %d, want %d", status, exitUsage)
	}
	for _, want := range []string{"2 faults", "  HEADROOM_BATCH_SIZE: ", "  HEADROOM_WORKRES: has no effect: no such setting; did you mean HEADROOM_WORKERS?"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("%q is not in:\n%s", want, stderr.String())
		}
	}
}

func TestTheSecondSignalEndsServeAtOnce(t *testing.T) {
	t.Parallel()
	p := startServe(t)
	// A caller that never finishes its request holds an orderly end up for five seconds.
	slow, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Close() }()
	if _, err := slow.Write([]byte("GET /healthz")); err != nil {
		t.Fatal(err)
	}
	p.healthy() // connections are accepted in turn: so was that one

	p.signal(syscall.SIGTERM)
	p.log.await(t, "draining")
	again := time.Now()
	p.signal(syscall.SIGTERM)
	if status := p.status(); status != exitFailed {
		t.Errorf("status %d, want %d:\n%s", status, exitFailed, p.log)
	}
	if took := time.Since(again); took > 3*time.Second {
		t.Errorf("it ended %s after the second signal", took)
	}
}

func TestTheProcessTellsUsageFromFailure(t *testing.T) {
	t.Parallel()
	for want, args := range map[int][]string{exitUsage: {"bogus"}, exitDone: {"version"}, exitFailed: {"plans", "apply", "no-such-file"}} {
		if got := statusOf(headroomCommand(t.Context(), t, args...).Run()); got != want {
			t.Errorf("headroom %v: status %d, want %d", args, got, want)
		}
	}
}

// beHeadroom is a variable that makes the test binary the program (see TestMain).
const beHeadroom = "BE_HEADROOM"

// headroomCommand runs the program as a process of its own.
func headroomCommand(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), beHeadroom+"=yes")
	return cmd
}

// statusOf is what a finished process told, -1 where it was killed.
func statusOf(err error) int {
	if exited, ok := errors.AsType[*exec.ExitError](err); ok {
		return exited.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// process is a serve command that runs by itself and reaches no service.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  *lines
	addr string
	done chan error
}

func startServe(t *testing.T, settings ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	p := &process{t: t, log: newLines(), done: make(chan error, 1)}
	p.cmd = headroomCommand(ctx, t, "serve")
	p.cmd.Env = append(p.cmd.Env, "HEADROOM_HTTP_ADDR=127.0.0.1:0", "HEADROOM_LOG_FORMAT=json",
		"HEADROOM_NATS_URL=nats://127.0.0.1:1", "HEADROOM_REDIS_URL=redis://127.0.0.1:1", "HEADROOM_POSTGRES_URL=postgres://127.0.0.1:1/none")
	p.cmd.Env = append(p.cmd.Env, settings...)
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.done <- p.cmd.Wait()
	}()
	t.Cleanup(func() {
		cancel() // kills it, unless it has ended
		for err := range p.done {
			t.Errorf("serve had to be killed: %v", err)
		}
	})
	p.addr, _ = p.log.await(t, "listening")["addr"].(string)
	return p
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// status waits for the end.
func (p *process) status() int {
	p.t.Helper()
	return statusOf(<-p.done)
}

func (p *process) healthy() {
	p.t.Helper()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + p.addr + "/healthz")
	if err != nil {
		p.t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		p.t.Fatalf("/healthz answers %d, %v", response.StatusCode, err)
	}
}
