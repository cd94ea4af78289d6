package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const apiDocs = "../../docs/api.md"

// example is commands of a page, and the answer that it shows of them.
type example struct {
	commands block
	answer   *block
}

// examplesOf are the sh blocks of a page, each with the json or http block behind it.
func examplesOf(t *testing.T, page string) []example {
	t.Helper()
	var all []example
	for _, b := range blocksOf(t, page) {
		isAnswer := b.kind == "json" || b.kind == "http"
		switch {
		case b.kind == "sh":
			all = append(all, example{commands: b})
		case isAnswer && len(all) > 0 && all[len(all)-1].answer == nil:
			all[len(all)-1].answer = &b
		case isAnswer || strings.Contains(b.text, "curl"):
			t.Errorf("%s:%d: this block is no command that is run, and no answer of one", page, b.line)
		}
	}
	return all
}

// TestTheCommandsOfTheAPIPageAnswerAsShown runs docs/api.md from its beginning to its end.
func TestTheCommandsOfTheAPIPageAnswerAsShown(t *testing.T) {
	t.Parallel()
	i := newInstallation(t).guarded()
	i.must("plans", "apply", demoCatalog)
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	shell := i.shell(t, "API=http://"+s.addr, "TOKEN="+engineToken, "OPS="+opsToken)
	examples := examplesOf(t, apiDocs)
	if len(examples) < 25 {
		t.Errorf("the page has %d examples", len(examples))
	}
	for _, e := range examples {
		e.check(t, shell)
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
}

// TestTheREADMEAsksAsItSays runs the curl commands of README, which ask the demo.
func TestTheREADMEAsksAsItSays(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	shell, ran := i.shell(t), 0
	for _, b := range blocksOf(t, "../../README.md") {
		if b.kind != "sh" || !strings.Contains(b.text, "curl ") {
			continue
		}
		ran++
		commands := strings.NewReplacer("127.0.0.1:8080", s.addr, "curl ", "curl --fail ").Replace(b.text)
		out, err := shell(commands)
		if err != nil || !strings.Contains(out, `"allowed":true`) || !strings.Contains(out, `"used":1,"limit":5`) {
			t.Errorf("README.md:%d: %s, %v", b.line, out, err)
		}
	}
	if ran != 1 {
		t.Errorf("README has %d blocks of curl commands, want 1", ran)
	}
}

// shell runs commands as somebody would who has the settings, and headroom on the path.
func (i *installation) shell(t *testing.T, variables ...string) func(commands string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Fatal("curl is not installed: run `bash .ci/install.sh test`")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, bin := t.TempDir(), t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n%s=yes exec '%s' \"$@\"\n", beHeadroom, self)
	if err := os.WriteFile(filepath.Join(bin, "headroom"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	environment := slices.Concat(os.Environ(), i.environment(), variables, []string{"PATH=" + bin + ":" + os.Getenv("PATH")})
	return func(commands string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
		command.Env, command.Dir = environment, dir
		var faults strings.Builder
		command.Stderr = &faults
		out, err := command.Output()
		if err != nil {
			return "", fmt.Errorf("%w: %s%s", err, out, faults.String())
		}
		return string(out), nil
	}
}

// check runs the commands. What only reads may be answered as shown a moment later: the
// record follows the decisions.
func (e example) check(t *testing.T, shell func(string) (string, error)) {
	t.Helper()
	reads := !strings.ContainsAny(e.commands.text, ">{") && !strings.Contains(e.commands.text, " -X ")
	deadline := time.After(patience)
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		out, err := shell(e.commands.text)
		if err != nil {
			t.Errorf("%s:%d: %v", apiDocs, e.commands.line, err)
			return
		}
		found := e.differences(out)
		if len(found) == 0 {
			return
		}
		over := !reads
		select {
		case <-ticker.C:
		case <-deadline:
			over = true
		}
		if over {
			t.Errorf("%s:%d: %s\nthe whole answer is\n%s", apiDocs, e.commands.line, strings.Join(found, "\n"), out)
			return
		}
	}
}

// differences lists where the output is not what is shown.
func (e example) differences(out string) []string {
	if e.answer == nil {
		if out != "" {
			return []string{"the page shows no answer"}
		}
		return nil
	}
	shownHead, shownBody := e.answer.parts()
	head, body := "", out
	if e.answer.kind == "http" {
		head, body, _ = strings.Cut(strings.ReplaceAll(out, "\r\n", "\n"), "\n\n")
	}
	found := headDifferences(shownHead, head)
	if shownBody == "" || body == "" {
		if shownBody != body {
			found = append(found, "of the two bodies one is empty")
		}
		return found
	}
	shown, err := readShown(shownBody)
	if err != nil {
		return append(found, "what is shown is no JSON: "+err.Error())
	}
	got, err := readShown(body)
	if err != nil {
		return append(found, "the answer is no JSON: "+err.Error())
	}
	return append(found, differences("body", shown, got)...)
}

// parts are the head and the body that are shown.
func (b block) parts() (head, body string) {
	if b.kind == "json" {
		return "", b.text
	}
	head, body, _ = strings.Cut(b.text, "\n\n")
	return strings.TrimSuffix(head, "\n"), body
}

// headDifferences holds the status line and the fields that are shown against a head.
func headDifferences(shown, got string) []string {
	shownStatus, fields, _ := strings.Cut(shown, "\n")
	status, rest, _ := strings.Cut(got, "\n")
	var found []string
	if strings.TrimSpace(status) != strings.TrimSpace(shownStatus) {
		found = append(found, fmt.Sprintf("the status is %s, shown is %s", status, shownStatus))
	}
	there := strings.Split(strings.TrimSpace(rest), "\n")
	for n := range there {
		there[n] = steady(there[n])
	}
	for line := range strings.Lines(fields) {
		if line = steady(strings.TrimSpace(line)); !slices.Contains(there, line) {
			found = append(found, fmt.Sprintf("no field is %q", line))
		}
	}
	return found
}
