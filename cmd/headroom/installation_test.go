package main

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// patience bounds whatever these tests wait for.
const patience = 30 * time.Second

// demoCatalog is a catalog that is known to be right.
const demoCatalog = "../../examples/catalog.yaml"

// installation is the services of one test and the settings that name them.
type installation struct {
	t        testing.TB
	settings map[string]string
}

func newInstallation(t testing.TB) *installation {
	t.Helper()
	return &installation{t: t, settings: map[string]string{
		"HEADROOM_NATS_URL":     schematest.NATSURL(t),
		"HEADROOM_REDIS_URL":    schematest.RedisURL(t),
		"HEADROOM_POSTGRES_URL": schematest.PostgresURL(t),
		"HEADROOM_HTTP_ADDR":    "127.0.0.1:0",
		"HEADROOM_LOG_LEVEL":    "warn",
	}}
}

// with is the same installation with some settings changed.
func (i *installation) with(settings map[string]string) *installation {
	changed := maps.Clone(i.settings)
	maps.Copy(changed, settings)
	return &installation{t: i.t, settings: changed}
}

// run runs a command to its end, in a context without a deadline, as main does.
func (i *installation) run(args ...string) (stdout, stderr string, err error) {
	i.t.Helper()
	ctx, cancel := context.WithCancel(i.t.Context())
	defer cancel()
	defer time.AfterFunc(patience, cancel).Stop()
	var out, errs bytes.Buffer
	err = run(ctx, args, environ(i.settings), &out, &errs)
	return out.String(), errs.String(), err
}

// must runs a command that has to succeed, and returns its stdout.
func (i *installation) must(args ...string) string {
	i.t.Helper()
	stdout, stderr, err := i.run(args...)
	if err != nil {
		i.t.Fatalf("headroom %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return stdout
}

// mustJSON runs a command with -o json and reads what it prints.
func (i *installation) mustJSON(into any, args ...string) {
	i.t.Helper()
	text := i.must(append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(text), into); err != nil {
		i.t.Fatalf("headroom %s: read its output: %v\n%s", strings.Join(args, " "), err, text)
	}
}

// jetStream is a test's own door to the streams.
func (i *installation) jetStream() jetstream.JetStream {
	i.t.Helper()
	js, err := jetstream.New(schematest.NATS(i.t))
	if err != nil {
		i.t.Fatal(err)
	}
	return js
}

// request publishes an execution.requested event.
func (i *installation) request(js jetstream.JetStream, workspace, execution string) {
	i.t.Helper()
	body, err := schemas.Encode(schemas.NewEvent("test", "request-"+execution, time.Now(), schemas.ExecutionRequested{
		WorkspaceID: workspace, ExecutionID: execution,
	}))
	if err != nil {
		i.t.Fatal(err)
	}
	if _, err := js.Publish(i.t.Context(), schemas.Topology{}.Requested(workspace), body); err != nil {
		i.t.Fatal(err)
	}
}

// decision waits for the decision on an execution.
func (i *installation) decision(js jetstream.JetStream, workspace, execution string) schemas.DecisionMade {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(i.t.Context(), patience)
	defer cancel()
	consumer, err := js.OrderedConsumer(ctx, schemas.Topology{}.Stream(schemas.StreamDecisions), jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{schemas.Topology{}.Decision(workspace)},
	})
	if err != nil {
		i.t.Fatal(err)
	}
	for {
		message, err := consumer.Next(jetstream.FetchContext(ctx))
		if err != nil {
			i.t.Fatalf("no decision on %s/%s: %v", workspace, execution, err)
		}
		event, err := schemas.Decode[schemas.DecisionMade](message.Subject(), message.Data())
		if err != nil {
			i.t.Fatal(err)
		}
		if event.Data.ExecutionID == execution {
			return event.Data
		}
	}
}

// decide asks for an execution and waits for the answer.
func (i *installation) decide(js jetstream.JetStream, workspace, execution string) schemas.DecisionMade {
	i.t.Helper()
	i.request(js, workspace, execution)
	return i.decision(js, workspace, execution)
}

// serving is a serve command that runs in this process.
type serving struct {
	t    testing.TB
	addr string
	log  *lines
	stop context.CancelFunc
	done chan error
}

// serve starts the command and returns once it listens. The test's end ends it.
func (i *installation) serve() *serving {
	i.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(i.t.Context()))
	s := &serving{t: i.t, log: newLines(), stop: cancel, done: make(chan error, 1)}
	info := i.with(map[string]string{"HEADROOM_LOG_LEVEL": "info"})
	go func() {
		defer close(s.done)
		s.done <- run(ctx, []string{"serve"}, environ(info.settings), s.log, s.log)
	}()
	i.t.Cleanup(func() {
		cancel()
		if err := <-s.done; err != nil {
			i.t.Errorf("serve ended with %v", err)
		}
	})
	s.addr, _ = s.log.await(i.t, "listening")["addr"].(string)
	return s
}

// end asks for an orderly end and returns what run returned.
func (s *serving) end() error {
	s.t.Helper()
	s.stop()
	select {
	case err := <-s.done:
		return err
	case <-time.After(patience):
		s.t.Fatalf("serve did not end:\n%s", s.log)
		return nil
	}
}

// readiness asks /readyz once. No connection is kept.
func (s *serving) readiness() (status int, body readiness) {
	s.t.Helper()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + s.addr + "/readyz")
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, body
}

// awaitStatus asks /readyz until it answers with the status.
func (s *serving) awaitStatus(want int) readiness {
	s.t.Helper()
	deadline := time.After(patience)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		status, body := s.readiness()
		if status == want {
			return body
		}
		select {
		case <-deadline:
			s.t.Fatalf("/readyz answers %d %+v, want %d; the log:\n%s", status, body, want, s.log)
		case <-ticker.C:
		}
	}
}

// lines is a writer of JSON log lines that can be waited for.
type lines struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed at each write
}

func newLines() *lines { return &lines{changed: make(chan struct{})} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await returns the first line with the message.
func (l *lines) await(t testing.TB, message string) map[string]any {
	t.Helper()
	return l.awaitTimes(t, message, 1)
}

// awaitTimes returns the nth line with the message.
func (l *lines) awaitTimes(t testing.TB, message string, n int) map[string]any {
	t.Helper()
	deadline := time.After(patience)
	for {
		l.mu.Lock()
		text, changed := l.text.String(), l.changed
		l.mu.Unlock()
		met := 0
		for line := range strings.Lines(text) {
			var fields map[string]any
			if json.Unmarshal([]byte(line), &fields) != nil || fields["msg"] != message {
				continue
			}
			if met++; met == n {
				return fields
			}
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%d lines %q in the log, want %d:\n%s", met, message, n, text)
		}
	}
}

// catalogFile writes a catalog with the demo's plans, edited.
func catalogFile(t testing.TB, edits ...string) string {
	t.Helper()
	body, err := os.ReadFile(demoCatalog)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(edits...).Replace(string(body))
	if len(edits) > 0 && text == string(body) {
		t.Fatalf("none of %q is in %s", edits, demoCatalog)
	}
	path := filepath.Join(t.TempDir(), "catalog.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// hasLine reports whether one line of the text has all the parts.
func hasLine(text string, parts ...string) bool {
	for line := range strings.Lines(text) {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			return true
		}
	}
	return false
}
