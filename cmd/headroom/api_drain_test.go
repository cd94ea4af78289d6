package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

// environment is the installation's settings as those of a process.
func (i *installation) environment() []string {
	var all []string
	for name, value := range i.settings {
		all = append(all, name+"="+value)
	}
	return append(all, "HEADROOM_LOG_LEVEL=info")
}

// TestAnEndUnderLoadLosesNoAdmission ends a process while callers are admitted: what they
// were told is what the stream has, nothing less and nothing more.
func TestAnEndUnderLoadLosesNoAdmission(t *testing.T) {
	t.Parallel()
	i := newInstallation(t).guarded()
	i.must("plans", "apply", catalogFile(t, "max_executions: 100\n", "max_executions: unlimited\n",
		"max_concurrent_executions: 2\n", "max_concurrent_executions: unlimited\n"))
	p := startServe(t, i.environment()...)
	p.log.await(t, "ready")
	c := newCaller(t, p.addr, engineToken)

	var mu sync.Mutex
	var admitted []string
	enough := make(chan struct{})
	var asking sync.WaitGroup
	for k := range 8 {
		asking.Go(func() {
			for n := 0; ; n++ {
				execution := fmt.Sprintf("e_%d_%d", k, n)
				a, err := c.try("POST", "/v1/workspaces/ws/executions", `{"execution_id": "`+execution+`"}`)
				if err != nil || a.status == http.StatusServiceUnavailable {
					return // it is ending, or gone
				}
				if a.status != http.StatusCreated {
					t.Errorf("%s: %d %s", execution, a.status, a.text)
					return
				}
				mu.Lock()
				if admitted = append(admitted, execution); len(admitted) == 300 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	p.signal(syscall.SIGTERM)
	if status := p.status(); status != exitDone {
		t.Errorf("status %d, want %d:\n%s", status, exitDone, p.log)
	}
	asking.Wait()

	slices.Sort(admitted)
	if allowed := allowedOnStream(t, i.jetStream(), "ws"); !slices.Equal(allowed, admitted) {
		t.Errorf("callers were told of %d admissions, and the stream has %d: %v and %v", len(admitted), len(allowed), admitted, allowed)
	}
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	var view struct {
		Usage struct{ Executions, Concurrent int }
	}
	newCaller(t, s.addr, engineToken).must(http.StatusOK, &view, "GET", "/v1/workspaces/ws", "")
	if view.Usage.Executions != len(admitted) || view.Usage.Concurrent != len(admitted) {
		t.Errorf("the next process counts %+v, want %d", view.Usage, len(admitted))
	}
	t.Logf("%d admissions", len(admitted))
}

// allowedOnStream is the executions of a workspace that the decisions stream allows.
func allowedOnStream(t *testing.T, js jetstream.JetStream, workspace string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	name, subject := schemas.Topology{}.Stream(schemas.StreamDecisions), schemas.Topology{}.Decision(workspace)
	stream, err := js.Stream(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
	if err != nil {
		t.Fatal(err)
	}
	var allowed []string
	for n := stream.CachedInfo().State.Msgs; n > 0; n-- {
		message, err := reader.Next(jetstream.FetchContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		event, err := schemas.Decode[schemas.DecisionMade](message.Subject(), message.Data())
		if err != nil {
			t.Fatal(err)
		}
		if event.Data.Allowed {
			allowed = append(allowed, event.Data.ExecutionID)
		}
	}
	slices.Sort(allowed)
	return allowed
}

func TestServeForOtherMachinesNeedsTokens(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"serve", "dev"} {
		i := newInstallation(t).with(map[string]string{"HEADROOM_HTTP_ADDR": "0.0.0.0:0"})
		stdout, _, err := i.run(command)
		if exitCode(err) != exitUsage || stdout != "" {
			t.Errorf("%s ended with status %d after %q: %v", command, exitCode(err), stdout, err)
		}
		for _, name := range []string{"HEADROOM_HTTP_ADDR", "HEADROOM_API_TOKENS"} {
			if !strings.Contains(fmt.Sprint(err), name) {
				t.Errorf("%s does not name %s: %v", command, name, err)
			}
		}
	}
}
