package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// told is what a cache was told; without a workspace it is that everything expired.
type told struct {
	Workspace string
	Revision  int64
}

// expired is what a cache is told when news may have been missed.
var expired = told{}

// listener is a plan cache that passes on what it is told.
type listener chan told

func newListener() listener { return make(listener, 1000) }

func (l listener) Invalidate(workspace string, revision int64) { l <- told{workspace, revision} }

func (l listener) Expire() { l <- expired }

// hears takes what comes next, which has to be that.
func (l listener) hears(t *testing.T, want told) {
	t.Helper()
	if diff := cmp.Diff(want, l.next(t)); diff != "" {
		t.Errorf("the cache was told something else (-want +got):\n%s", diff)
	}
}

func (l listener) next(t *testing.T) told {
	t.Helper()
	select {
	case got := <-l:
		return got
	case <-time.After(patience):
		t.Fatal("the cache was told nothing")
		return told{}
	}
}

// quiet checks that nothing was told that was not taken yet.
func (l listener) quiet(t *testing.T) {
	t.Helper()
	select {
	case got := <-l:
		t.Errorf("the cache was told %+v", got)
	default:
	}
}

// runs runs something until the test ends.
func runs(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
}

// connect is a connection that tries for ever, as a process has one.
func connect(t *testing.T, address string) jetstream.JetStream {
	t.Helper()
	closed := make(chan struct{})
	conn, err := nats.Connect(address, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ReconnectJitter(0, 0), nats.ReconnectBufSize(-1), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		<-closed
	})
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// plansStream is a connection of the test's own to a server that has the streams.
func plansStream(t *testing.T) jetstream.JetStream {
	t.Helper()
	js := connect(t, schematest.NATSURL(t))
	if _, err := (schemas.Topology{}).Ensure(t.Context(), js); err != nil {
		t.Fatal(err)
	}
	return js
}

func eventBody(t *testing.T, workspace string, revision int64, at time.Time) []byte {
	t.Helper()
	body, err := schemas.Encode(schemas.NewEvent("test", "i-"+workspace, at, schemas.PlanInvalidated{
		WorkspaceID: workspace, PlanRevision: revision, Reason: "test",
	}))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// invalidate publishes until the stream has it: after a loss it may take a moment.
func invalidate(t *testing.T, js jetstream.JetStream, workspace string, revision int64) {
	t.Helper()
	body := eventBody(t, workspace, revision, time.Now())
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(patience)
	for {
		_, err := js.Publish(t.Context(), schemas.Topology{}.Invalidated(workspace), body)
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("the invalidation could not be published: %v", err)
		}
	}
}
