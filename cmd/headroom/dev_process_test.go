package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// processPatience bounds whatever a test of the process waits for.
const processPatience = time.Minute

func TestDevRunsAsAProcessAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "headroom")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the binary: %v\n%s", err, out)
	}
	t.Run("once, it ends with a summary", func(t *testing.T) {
		t.Parallel()
		dev := startDev(t, binary, "--once", "--speed", "max")
		dev.await(t, regexp.MustCompile(`^WORKSPACE +PLAN +REQUESTED`))
		dev.await(t, regexp.MustCompile(`^all +50 `))
		dev.await(t, regexp.MustCompile(`^6 workflows: 2 succeeded, 1 failed, 1 denied, 2 stopped\.$`))
		dev.ends(t)
	})
	t.Run("asked to end in the middle of the trace", func(t *testing.T) {
		t.Parallel()
		dev := startDev(t, binary, "--speed", "1")
		dev.await(t, regexp.MustCompile(`bakery .* allowed$`))
		dev.signal(t, syscall.SIGTERM)
		dev.ends(t)
	})
	t.Run("asked to end while its services start", func(t *testing.T) {
		t.Parallel()
		dev := startDev(t, binary)
		dev.await(t, regexp.MustCompile(`^Starting private`))
		dev.signal(t, os.Interrupt)
		dev.ends(t)
	})
	t.Run("it stays up, and what it says to do by hand works", func(t *testing.T) {
		t.Parallel()
		dev := startDev(t, binary, "--speed", "max")
		line := dev.await(t, regexp.MustCompile(`^  nats --server (\S+) pub (\S+) '(.*)'$`))
		publishByHand(t, line[1], line[2], line[3])
		var settings []string
		for range 3 {
			export := dev.await(t, regexp.MustCompile(`^  export (HEADROOM_\w+=)'?(.*?)'?$`))
			settings = append(settings, export[1]+export[2])
		}
		command := dev.await(t, regexp.MustCompile(`^  (\S+) decisions bakery$`))
		asked := exec.CommandContext(t.Context(), command[1], "decisions", "bakery")
		asked.Env = append(os.Environ(), settings...)
		if out, err := asked.CombinedOutput(); err != nil || !strings.Contains(string(out), "allowed") {
			t.Errorf("%s: %v\n%s", asked, err, out)
		}
		for range 2 { // an admission, and what it did
			curl := dev.await(t, regexp.MustCompile(`^  (curl .*/v1/workspaces/bakery.*)$`))
			if out, err := exec.CommandContext(t.Context(), "sh", "-c", curl[1]).Output(); err != nil || !strings.Contains(string(out), `"plan_key":"free"`) {
				t.Errorf("%s: %v\n%s", curl[1], err, out)
			}
		}
		dev.await(t, regexp.MustCompile(`bakery .* hand-2 .* allowed$`))
		if said := strings.Join(dev.said, "\n"); !regexp.MustCompile(`bakery .* hand-1 .* allowed\n`).MatchString(said) {
			t.Errorf("nothing is said of hand-1:\n%s", said)
		}
		dev.signal(t, os.Interrupt)
		dev.ends(t)
	})
}

func TestDevRefusesBeforeItStartsAnything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.csv")
	if err := os.WriteFile(bad, []byte("system,application\nx,y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		exit int
		text string
	}{
		"a trace that is not there":   {[]string{"--trace", filepath.Join(dir, "none.csv")}, exitFailed, "none.csv"},
		"a trace that is none":        {[]string{"--trace", bad}, exitFailed, "bad.csv:1: execution: the header lacks this column"},
		"a catalog that is not there": {[]string{"--catalog", filepath.Join(dir, "none.yaml")}, exitFailed, "none.yaml"},
		"a catalog that is none":      {[]string{"--catalog", bad}, exitFailed, "bad.csv"},
		"a speed of nothing":          {[]string{"--speed", "0"}, exitUsage, "auto"},
		"a speed that is none":        {[]string{"--speed", "fast"}, exitUsage, `"fast"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, faults strings.Builder
			err := run(t.Context(), append([]string{"dev"}, test.args...), func(string) string { return "" }, &out, &faults)
			if exitCode(err) != test.exit || !strings.Contains(fmt.Sprint(err), test.text) {
				t.Errorf("got exit code %d, %v; want %d and %q", exitCode(err), err, test.exit, test.text)
			}
			if out.Len() > 0 {
				t.Errorf("it began all the same: %s", out.String())
			}
		})
	}
}

// devProcess is a running `headroom dev` with a temporary directory of its own.
type devProcess struct {
	cmd   *exec.Cmd
	dir   string
	lines chan string
	// said is all that was read so far.
	said []string
}

func startDev(t *testing.T, binary string, args ...string) *devProcess {
	t.Helper()
	dir := t.TempDir()
	// The services' unprivileged user has to reach it.
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	d := &devProcess{cmd: exec.Command(binary, append([]string{"dev"}, args...)...), dir: dir, lines: make(chan string, 10000)}
	d.cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	read, write := io.Pipe()
	d.cmd.Stdout, d.cmd.Stderr = write, write
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	impatience := time.AfterFunc(processPatience, func() { _ = d.cmd.Process.Kill() })
	t.Cleanup(func() {
		impatience.Stop()
		_ = d.cmd.Process.Kill() // has ended, unless the test failed
		for range d.lines {
		}
	})
	go func() {
		defer close(d.lines)
		for lines := bufio.NewScanner(read); lines.Scan(); {
			d.lines <- lines.Text()
		}
	}()
	go func() { _ = write.CloseWithError(d.cmd.Wait()) }()
	return d
}

// await returns what the pattern found in the next line that has it.
func (d *devProcess) await(t *testing.T, pattern *regexp.Regexp) []string {
	t.Helper()
	for line := range d.lines {
		d.said = append(d.said, line)
		if found := pattern.FindStringSubmatch(line); found != nil {
			return found
		}
	}
	t.Fatalf("it ended without a line like %s:\n%s", pattern, strings.Join(d.said, "\n"))
	return nil
}

func (d *devProcess) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// ends waits for the process's end with status 0, and finds nothing left of it.
func (d *devProcess) ends(t *testing.T) {
	t.Helper()
	for line := range d.lines {
		d.said = append(d.said, line)
	}
	if !d.cmd.ProcessState.Success() {
		t.Fatalf("it ended with %s:\n%s", d.cmd.ProcessState, strings.Join(d.said, "\n"))
	}
	left, err := os.ReadDir(d.dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind in its temporary directory: %v, %v", left, err)
	}
	if running := processesIn(t, d.dir); len(running) > 0 {
		t.Errorf("left running:\n%s", strings.Join(running, "\n"))
	}
}

// processesIn lists the processes that name the directory or work in it.
func processesIn(t *testing.T, dir string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-axwwo", "pid=,command=").Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, dir) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	working, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range working {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, dir) {
			found = append(found, link+" -> "+target)
		}
	}
	return found
}

func publishByHand(t *testing.T, server, subject, body string) {
	t.Helper()
	conn, err := nats.Connect(server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Publish(subject, []byte(body)); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
}
