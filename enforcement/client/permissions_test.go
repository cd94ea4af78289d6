package client_test

import (
	"context"
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

// guarded is a server whose user "engine" may do what docs/client.md lists, and
// whose user "headroom" may do anything.
func guarded(t *testing.T) (as func(user string) *nats.Conn) {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
		Users: []*server.User{{Username: "headroom", Password: "p"}, {Username: "engine", Password: "p", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: []string{
				"headroom.executions.*.ws",
				"$JS.API.CONSUMER.CREATE.HEADROOM_DECISIONS.>", "$JS.API.CONSUMER.MSG.NEXT.HEADROOM_DECISIONS.engine",
				"$JS.ACK.HEADROOM_DECISIONS.engine.>",
			}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.eu-1.>", "headroom.decisions.ws"}},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server did not start")
	}
	return func(user string) *nats.Conn {
		nc, err := nats.Connect(s.ClientURL(), nats.UserInfo(user, "p"), nats.CustomInboxPrefix("_INBOX.eu-1"),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
}

func TestTheDocumentedPermissionsAreEnough(t *testing.T) {
	t.Parallel()
	as := guarded(t)
	js, err := jetstream.New(as("headroom"))
	if err != nil {
		t.Fatal(err)
	}
	newHeadroomOver(t, js, limits(nil), time.Hour)
	nc := as("engine")
	c, err := client.New(nc, client.Options{Source: "test-engine", Log: schematest.Logger(t), Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	heard := make(chan schemas.DecisionMade, 10)
	end := read(t, c, func(_ context.Context, d schemas.DecisionMade) error { heard <- d; return nil })
	run := admitted(t, c, execution("e1"))
	ctx, stop := run.Context(t.Context())
	defer stop()
	if d := receive(t, heard); d.ExecutionID != "e1" {
		t.Errorf("the stream has %+v", d)
	}
	if err := run.Progress(ctx); err != nil {
		t.Error(err)
	}
	if err := run.Complete(t.Context(), schemas.OutcomeSucceeded); err != nil {
		t.Error(err)
	}
	end()
	if err := nc.LastError(); err != nil {
		t.Errorf("the server refused something: %v", err)
	}
	// What is not permitted is named.
	_, err = c.Admit(t.Context(), client.Execution{WorkspaceID: "other", ID: "e1"})
	if err == nil || !strings.Contains(strings.ToLower(err.Error()), "permissions violation for publish") {
		t.Errorf("another workspace's execution came out as %v", err)
	}
}

func TestAnInboxThatHeadroomWouldNotAnswerIsRefused(t *testing.T) {
	t.Parallel()
	nc, err := nats.Connect(schematest.NATSURL(t), nats.CustomInboxPrefix("replies"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for name, o := range map[string]client.Options{
		"another inbox": {Source: "engine"}, "no source": {}, "a prefix with a blank": {Source: "engine", Topology: schemas.Topology{Prefix: "a b"}},
	} {
		if _, err := client.New(nc, o); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
