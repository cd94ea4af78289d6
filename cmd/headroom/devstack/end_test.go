package devstack_test

import (
	"path/filepath"
	"syscall"
	"testing"
)

func TestNothingIsLeftWhenTheParent(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		mode string
		end  func(p *process) error
	}{
		"is killed":            {modeAbrupt, func(p *process) error { return p.cmd.Process.Kill() }},
		"exits without a stop": {modeForgetful, func(*process) error { return nil }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startParent(t, test.mode)
			p.expect(t, "ready")
			family := below(t, p.cmd.Process.Pid)
			if err := test.end(p); err != nil {
				t.Fatal(err)
			}
			_ = p.cmd.Wait()
			assertNothingLeft(t, p.dir, family)
		})
	}
}

func TestServicesOutliveTheSignalUntilTheOrderlyStop(t *testing.T) {
	t.Parallel()
	tests := map[string]func(pid int) error{
		"SIGTERM to the parent": func(pid int) error { return syscall.Kill(pid, syscall.SIGTERM) },
		// What a terminal does: every process of the group gets it.
		"Ctrl-C": func(pid int) error { return syscall.Kill(-pid, syscall.SIGINT) },
	}
	for name, send := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startParent(t, modeOrderly)
			p.expect(t, "ready")
			family := below(t, p.cmd.Process.Pid)
			// A guard each, postgres with its own, redis-server.
			if len(family) < 5 {
				t.Errorf("the parent has %d descendants, want at least 5: %v", len(family), family)
			}
			if err := send(p.cmd.Process.Pid); err != nil {
				t.Fatal(err)
			}
			p.expect(t, "answering")
			if err := p.cmd.Wait(); err != nil {
				t.Errorf("the parent ended with %v", err)
			}
			assertNothingLeft(t, p.dir, family)
		})
	}
}

func TestNothingIsLeftWhenTheParentIsKilledWhileStarting(t *testing.T) {
	t.Parallel()
	// The kill falls as soon as the file is there.
	moments := map[string]string{
		"with one directory made": "headroom-*",
		"at initdb's start":       "headroom-postgres-*/initdb.log",
		"in the midst of initdb":  "headroom-postgres-*/data/base",
		"at PostgreSQL's start":   "headroom-postgres-*/data/postmaster.pid",
		"at Redis's start":        "headroom-redis-*/redis-server.log",
	}
	for name, pattern := range moments {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startParent(t, modeAbrupt)
			eventually(t, func() string {
				if found, err := filepath.Glob(filepath.Join(p.dir, pattern)); err != nil || len(found) == 0 {
					return "there is no " + pattern
				}
				return ""
			})
			// Held still, the parent starts nothing between the look at its family and its death.
			if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			family := below(t, p.cmd.Process.Pid)
			if err := p.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = p.cmd.Wait()
			assertNothingLeft(t, p.dir, family)
		})
	}
}
