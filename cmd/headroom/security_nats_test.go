package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// natsExample is the configuration that docs/security.md explains.
const natsExample = "../../examples/security/nats.conf"

// permitted is a server with the example's users.
type permitted struct {
	t       *testing.T
	address string
}

func startPermitted(t *testing.T) permitted {
	t.Helper()
	text, err := os.ReadFile(natsExample)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "nats.conf")
	body := `listen: "127.0.0.1:-1"` + "\n" + regexp.MustCompile(`\$[A-Z]+_PASSWORD`).ReplaceAllString(string(text), password)
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	options.NoLog, options.NoSigs, options.StoreDir = true, true, t.TempDir()
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server takes no connections")
	}
	return permitted{t: t, address: s.Addr().String()}
}

func (p permitted) url(user string) string {
	return fmt.Sprintf("nats://%s:%s@%s", user, password, p.address)
}

// as is a connection of that user, with what the server refused it.
func (p permitted) as(user, inbox string) (*nats.Conn, <-chan error) {
	p.t.Helper()
	refusals := make(chan error, 64)
	nc, err := nats.Connect(p.url(user), nats.CustomInboxPrefix("_INBOX."+inbox), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		refusals <- err
	}))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(nc.Close)
	return nc, refusals
}

// permittedHeadroom serves under the example's permissions.
func permittedHeadroom(t *testing.T) (permitted, *serving) {
	t.Helper()
	p := startPermitted(t)
	i := newInstallation(t)
	i.with(map[string]string{"HEADROOM_NATS_URL": p.url("operator")}).must("migrate")
	i.must("plans", "apply", demoCatalog)
	s := i.with(map[string]string{"HEADROOM_NATS_URL": p.url("headroom")}).serve()
	s.awaitStatus(http.StatusOK)
	return p, s
}

func TestTheExamplesPermissionsAreEnough(t *testing.T) {
	t.Parallel()
	p, s := permittedHeadroom(t)
	operator, _ := p.as("operator", "operator")
	js := streams(t, operator)
	durable := jetstream.ConsumerConfig{
		Durable: "ws_1", FilterSubject: schemas.Topology{}.Decision("ws_1"), AckPolicy: jetstream.AckExplicitPolicy,
	}
	if _, err := js.CreateConsumer(t.Context(), schemas.Topology{}.Stream(schemas.StreamDecisions), durable); err != nil {
		t.Fatal(err)
	}

	engine, refused := p.as("engine_ws_1", "ws_1")
	c, err := client.New(engine, client.Options{Source: "engine", Log: schematest.Logger(t), Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	run, err := c.Admit(t.Context(), client.Execution{WorkspaceID: "ws_1", ID: "e1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Progress(t.Context()); err != nil {
		t.Error(err)
	}
	if err := run.Complete(t.Context(), schemas.OutcomeSucceeded); err != nil {
		t.Error(err)
	}
	consumer, err := streams(t, engine).Consumer(t.Context(), schemas.Topology{}.Stream(schemas.StreamDecisions), "ws_1")
	if err != nil {
		t.Fatal(err)
	}
	m, err := consumer.Next(jetstream.FetchMaxWait(patience))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.DoubleAck(t.Context()); err != nil {
		t.Error(err)
	}

	billing, billingRefused := p.as("billing", "billing")
	if _, err := streams(t, billing).Publish(t.Context(), schemas.Topology{}.Renewed("ws_1"), []byte("{}")); err != nil {
		t.Errorf("billing: %v", err)
	}
	asker, askerRefused := p.as("asker", "asker")
	for _, question := range []struct{ name, body string }{
		{"admit", `{"workspace_id":"ws_2","execution_id":"e2"}`},
		{"complete", `{"workspace_id":"ws_2","execution_id":"e2","outcome":"succeeded"}`},
		{"usage", `{"workspace_id":"ws_2"}`},
		{"consume", `{"workspace_id":"ws_2","feature":"automations"}`},
	} {
		answer, err := asker.Request("headroom.api."+question.name, []byte(question.body), patience)
		if err != nil || answer.Header.Get("Nats-Service-Error") != "" {
			t.Errorf("asker: %s: %v %v", question.name, answer, err)
		}
	}
	auditor, auditorRefused := p.as("auditor", "auditor")
	stream, err := streams(t, auditor).Stream(t.Context(), schemas.Topology{}.Stream(schemas.StreamDecisions))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.GetMsg(t.Context(), 1); err != nil {
		t.Errorf("auditor: %v", err)
	}
	// What billing told is no event, so that the dead letter is the proof that it was read.
	letters, err := streams(t, operator).Stream(t.Context(), schemas.Topology{}.Stream(schemas.StreamDeadLetters))
	if err != nil {
		t.Fatal(err)
	}
	schematest.Eventually(t, "a dead letter", func() bool {
		info, err := letters.Info(t.Context())
		return err == nil && info.State.Msgs == 1
	})
	for user, refusals := range map[string]<-chan error{"engine": refused, "billing": billingRefused, "asker": askerRefused, "auditor": auditorRefused} {
		select {
		case err := <-refusals:
			t.Errorf("%s was refused: %v", user, err)
		default:
		}
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if strings.Contains(strings.ToLower(s.log.String()), "permissions violation") {
		t.Errorf("Headroom was refused something:\n%s", s.log)
	}
}

func TestTheExamplesPermissionsRefuseTheRest(t *testing.T) {
	t.Parallel()
	p := startPermitted(t)
	operator, _ := p.as("operator", "operator")
	if _, err := (schemas.Topology{}).Ensure(t.Context(), streams(t, operator)); err != nil {
		t.Fatal(err)
	}
	destroy := []string{
		"$JS.API.STREAM.DELETE.HEADROOM_DECISIONS", "$JS.API.STREAM.PURGE.HEADROOM_DECISIONS",
		"$JS.API.STREAM.UPDATE.HEADROOM_DECISIONS", "$JS.API.STREAM.MSG.DELETE.HEADROOM_DECISIONS",
	}
	for user, forbidden := range map[string]struct{ publish, subscribe []string }{
		"headroom": {
			append([]string{
				"headroom.executions.requested.ws_1", "headroom.executions.progressed.ws_1", "$JS.API.CONSUMER.DELETE.HEADROOM_EXECUTIONS.requested",
			}, destroy...),
			[]string{">", "headroom.>"},
		},
		"engine_ws_1": {append([]string{
			"headroom.executions.requested.ws_2", "headroom.executions.completed.ws_2", "headroom.executions.requested.ws_1.more",
			"headroom.decisions.ws_1", "headroom.subscriptions.renewed.ws_1", "headroom.plans.invalidated.ws_1", "headroom.usage.threshold.ws_1",
			"headroom.deadletters.executions.requested", "headroom.api.admit", "$SRV.INFO", "_INBOX.ws_2.x",
			"$JS.API.CONSUMER.CREATE.HEADROOM_DECISIONS.ws_1.headroom.decisions.ws_1", "$JS.API.CONSUMER.CREATE.HEADROOM_DECISIONS",
			"$JS.API.CONSUMER.MSG.NEXT.HEADROOM_DECISIONS.ws_2", "$JS.API.CONSUMER.MSG.NEXT.HEADROOM_EXECUTIONS.requested",
			"$JS.API.DIRECT.GET.HEADROOM_DECISIONS", "$JS.API.DIRECT.GET.HEADROOM_DECISIONS.headroom.decisions.ws_2",
			"$JS.API.STREAM.MSG.GET.HEADROOM_DECISIONS", "$JS.ACK.HEADROOM_EXECUTIONS.requested.1.1.1.1.1", "$JS.ACK.HEADROOM_DECISIONS.ws_2.1.1.1.1.1",
			"$JS.API.INFO", "$JS.API.STREAM.NAMES",
		}, destroy...), []string{">", "headroom.>", "headroom.decisions.*", "headroom.decisions.ws_2", "headroom.executions.requested.ws_1", "headroom.api.admit", "_INBOX.>", "_INBOX.ws_2.>", "_INBOX.headroom.>"}},
		"billing": {
			append([]string{"headroom.executions.requested.ws_1", "headroom.decisions.ws_1", "headroom.api.admit"}, destroy...),
			[]string{"headroom.subscriptions.renewed.*", "headroom.decisions.*", "_INBOX.>"},
		},
		"asker": {
			append([]string{"headroom.executions.requested.ws_1", "headroom.decisions.ws_1", "headroom.subscriptions.renewed.ws_1", "$SRV.INFO"}, destroy...),
			[]string{"headroom.api.>", "headroom.decisions.*", "_INBOX.>"},
		},
		"auditor": {append([]string{
			"headroom.executions.requested.ws_1", "headroom.decisions.ws_1", "headroom.api.usage", "headroom.deadletters.executions.requested",
			"$JS.API.CONSUMER.CREATE.HEADROOM_DECISIONS.x.headroom.decisions.*", "$JS.API.CONSUMER.MSG.NEXT.HEADROOM_EXECUTIONS.requested",
			"$JS.API.CONSUMER.DELETE.HEADROOM_EXECUTIONS.requested",
		}, destroy...), []string{"headroom.api.>", "headroom.executions.requested.*", "_INBOX.>"}},
	} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			p := permitted{t: t, address: p.address}
			nc, refusals := p.as(user, "any")
			for _, subject := range forbidden.publish {
				if err := nc.Publish(subject, nil); err != nil {
					t.Fatal(err)
				}
				refusedAs(t, nc, refusals, `Publish to "`+subject+`"`)
			}
			for _, subject := range forbidden.subscribe {
				if _, err := nc.Subscribe(subject, func(*nats.Msg) {}); err != nil {
					t.Fatal(err)
				}
				refusedAs(t, nc, refusals, `Subscription to "`+subject+`"`)
			}
		})
	}
}

// A server answers a message itself, to the subject that its publisher names.
func TestAnAcknowledgementIsNoWayRoundThePermissions(t *testing.T) {
	t.Parallel()
	p := startPermitted(t)
	operator, _ := p.as("operator", "operator")
	if _, err := (schemas.Topology{}).Ensure(t.Context(), streams(t, operator)); err != nil {
		t.Fatal(err)
	}
	engine, refusals := p.as("engine_ws_1", "ws_1")
	for _, reply := range []string{
		"$JS.API.STREAM.PURGE.HEADROOM_DECISIONS", "$JS.API.STREAM.MSG.DELETE.HEADROOM_DECISIONS", "$JS.API.CONSUMER.RESET.HEADROOM_EXECUTIONS.requested",
	} {
		if err := engine.PublishRequest("headroom.executions.requested.ws_1", reply, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		refusedAs(t, engine, refusals, `Publish with Reply of "`+reply+`"`)
	}
}

// refusedAs fails the test unless the server has just refused that.
func refusedAs(t *testing.T, nc *nats.Conn, refusals <-chan error, what string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-refusals:
		if !strings.Contains(err.Error(), what) {
			t.Errorf("refused is %v, want %s", err, what)
		}
	case <-time.After(time.Second):
		t.Errorf("%s was not refused", what)
	}
}

func streams(t *testing.T, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}
