package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// told is what a cache was told.
type told struct {
	Workspace string
	Revision  int64
}

// listener is a plan cache that passes on what it is told.
type listener chan told

func (l listener) Invalidate(workspace string, revision int64) { l <- told{workspace, revision} }

func (l listener) hears(t *testing.T, want told) {
	t.Helper()
	select {
	case got := <-l:
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the cache was told something else (-want +got):\n%s", diff)
		}
	case <-time.After(patience):
		t.Fatalf("the cache was not told of %+v", want)
	}
}

// listening runs Invalidations over the test's NATS until the test ends.
func listening(t *testing.T, js jetstream.JetStream) listener {
	t.Helper()
	heard := make(listener, 10)
	news, err := client.OpenInvalidations(t.Context(), client.InvalidationsOptions{
		JetStream: js, Topology: schemas.Topology{}, Plans: heard, Log: schematest.Logger(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- news.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
	return heard
}

func plansStream(t *testing.T) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(schematest.NATS(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (schemas.Topology{}).Ensure(t.Context(), js); err != nil {
		t.Fatal(err)
	}
	return js
}

func invalidate(t *testing.T, js jetstream.JetStream, workspace string, revision int64) {
	t.Helper()
	body, err := schemas.Encode(schemas.NewEvent("test", "i-"+workspace, time.Now(), schemas.PlanInvalidated{
		WorkspaceID: workspace, PlanRevision: revision, Reason: "test",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), schemas.Topology{}.Invalidated(workspace), body); err != nil {
		t.Fatal(err)
	}
}

func TestACacheIsToldOfEachInvalidationSinceItWasOpened(t *testing.T) {
	t.Parallel()
	js := plansStream(t)
	invalidate(t, js, "ws_before", 1)
	heard := listening(t, js)
	invalidate(t, js, "ws_a", 7)
	heard.hears(t, told{"ws_a", 7})
	invalidate(t, js, "ws_b", 0)
	heard.hears(t, told{"ws_b", 0})
}

func TestEachProcessHearsOfAnInvalidation(t *testing.T) {
	t.Parallel()
	js := plansStream(t)
	one, other := listening(t, js), listening(t, js)
	invalidate(t, js, "ws", 3)
	one.hears(t, told{"ws", 3})
	other.hears(t, told{"ws", 3})
}

func TestAMalformedInvalidationDropsWhatItsSubjectNames(t *testing.T) {
	t.Parallel()
	js := plansStream(t)
	heard := listening(t, js)
	for _, body := range []string{"{", `{"specversion":"1.0"}`} {
		if _, err := js.Publish(t.Context(), schemas.Topology{}.Invalidated("ws_odd"), []byte(body)); err != nil {
			t.Fatal(err)
		}
		heard.hears(t, told{"ws_odd", 0})
	}
	invalidate(t, js, "ws_after", 1)
	heard.hears(t, told{"ws_after", 1})
}

func TestAnInvalidationDuringALostConnectionIsHeardAfterIt(t *testing.T) {
	t.Parallel()
	server := schematest.NATSServer(t)
	js := plansStream(t)
	heard := listening(t, js)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A connection of its own: the listener's may take longer to come back.
	own, err := nats.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	publisher, err := jetstream.New(own)
	if err != nil {
		t.Fatal(err)
	}
	invalidate(t, publisher, "ws_meanwhile", 2)
	heard.hears(t, told{"ws_meanwhile", 2})
}
