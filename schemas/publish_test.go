package schemas_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// publisher is one over a server with Headroom's streams.
func publisher(t testing.TB, o schemas.PublisherOptions) (*schemas.Publisher, jetstream.JetStream) {
	t.Helper()
	js := jetStream(t, schematest.NATS(t))
	ensure(t, schemas.Topology{}, js)
	p, err := schemas.NewPublisher(js, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, js
}

// decisions are n messages to the decisions of a workspace.
func decisions(ws string, n int) []schemas.Message {
	messages := make([]schemas.Message, n)
	for i := range messages {
		messages[i] = schemas.Message{
			Subject: schemas.Topology{}.Decision(ws), ID: ws + "-" + strconv.Itoa(i), Body: fmt.Appendf(nil, "%s %d", ws, i),
		}
	}
	return messages
}

func stored(t testing.TB, js jetstream.JetStream, kind schemas.StreamKind) uint64 {
	t.Helper()
	stream, err := js.Stream(t.Context(), schemas.Topology{}.Stream(kind))
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().State.Msgs
}

func TestPublishAllTellsWhereEachMessageIs(t *testing.T) {
	t.Parallel()
	p, js := publisher(t, schemas.PublisherOptions{})
	messages := decisions("ws", 3)
	messages[1].Header = nats.Header{"Traceparent": {"00-aa-bb-01"}}
	want := []schemas.Result{{Sequence: 1}, {Sequence: 2}, {Sequence: 3}}
	if diff := cmp.Diff(want, p.PublishAll(t.Context(), messages)); diff != "" {
		t.Errorf("first time (-want +got):\n%s", diff)
	}
	for i := range want {
		want[i].Duplicate = true
	}
	if diff := cmp.Diff(want, p.PublishAll(t.Context(), messages)); diff != "" {
		t.Errorf("second time (-want +got):\n%s", diff)
	}
	if err := p.Publish(t.Context(), messages[0]); err != nil {
		t.Errorf("a duplicate is an error: %v", err)
	}
	if n := stored(t, js, schemas.StreamDecisions); n != 3 {
		t.Errorf("%d messages are stored, want 3", n)
	}
	if diff := cmp.Diff(nats.Header{"Traceparent": {"00-aa-bb-01"}}, messages[1].Header); diff != "" {
		t.Errorf("the caller's header was changed (-want +got):\n%s", diff)
	}
	stream, err := js.Stream(t.Context(), schemas.Topology{}.Stream(schemas.StreamDecisions))
	if err != nil {
		t.Fatal(err)
	}
	got, err := stream.GetMsg(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if got.Header.Get("Traceparent") != "00-aa-bb-01" || got.Header.Get("Nats-Msg-Id") != "ws-1" || string(got.Data) != "ws 1" {
		t.Errorf("stored is %v %s", got.Header, got.Data)
	}
}

func TestPublishAllDropsNothingWhenTheWindowIsSmall(t *testing.T) {
	t.Parallel()
	const callers, each = 4, 2000
	p, js := publisher(t, schemas.PublisherOptions{Window: 8})
	var group errgroup.Group
	for c := range callers {
		group.Go(func() error {
			last := uint64(0)
			for i, r := range p.PublishAll(t.Context(), decisions("ws"+strconv.Itoa(c), each)) {
				if r.Err != nil || r.Duplicate || r.Sequence <= last {
					return fmt.Errorf("message %d after %d: %+v", i, last, r)
				}
				last = r.Sequence
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	if n := stored(t, js, schemas.StreamDecisions); n != callers*each {
		t.Errorf("%d messages are stored, want %d", n, callers*each)
	}
}

func TestAMessageThatNobodyTakesDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	p, _ := publisher(t, schemas.PublisherOptions{})
	messages := decisions("ws", 3)
	messages[1].Subject += ".a_token_too_many"
	results := p.PublishAll(t.Context(), messages)
	if results[0].Err != nil || results[2].Err != nil {
		t.Errorf("the others: %v and %v", results[0].Err, results[2].Err)
	}
	if err := results[1].Err; !errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, schemas.ErrNoAck) || !strings.Contains(err.Error(), messages[1].Subject) {
		t.Errorf("error is %v, want that no stream takes %s", err, messages[1].Subject)
	}
}

// mute makes a subject that takes messages and never answers, as a server does
// whose answers are lost.
func mute(t testing.TB) string {
	t.Helper()
	if _, err := schematest.NATS(t).Subscribe("mute", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	return "mute"
}

func TestAMissingAnswerIsAnErrorThatSaysTheMessageMayBeStored(t *testing.T) {
	t.Parallel()
	p, _ := publisher(t, schemas.PublisherOptions{Window: 1, AckTimeout: 20 * time.Millisecond})
	messages := decisions("ws", 3)
	messages[1].Subject = mute(t)
	results := p.PublishAll(t.Context(), messages)
	if results[0].Err != nil || results[2].Err != nil {
		t.Errorf("the others: %v and %v", results[0].Err, results[2].Err)
	}
	if err := results[1].Err; !errors.Is(err, schemas.ErrNoAck) || !strings.Contains(err.Error(), "may be stored") {
		t.Errorf("error is %v, want ErrNoAck", err)
	}
}

func TestPublishAllEndsWithItsContext(t *testing.T) {
	t.Parallel()
	p, _ := publisher(t, schemas.PublisherOptions{Window: 2, AckTimeout: 200 * time.Millisecond})
	stop := errors.New("the test says stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	sent := make(chan struct{}, 2)
	if _, err := schematest.NATS(t).Subscribe("mute", func(*nats.Msg) { sent <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	messages := decisions("ws", 4)
	for i := range messages {
		messages[i].Subject = "mute"
	}
	done := make(chan []schemas.Result)
	go func() { done <- p.PublishAll(ctx, messages) }()
	<-sent
	<-sent
	cancel(stop)
	for i, r := range <-done {
		if !errors.Is(r.Err, stop) {
			t.Errorf("message %d: %v, want the cause", i, r.Err)
		}
		if mayBeStored := errors.Is(r.Err, schemas.ErrNoAck); mayBeStored != (i < 2) {
			t.Errorf("message %d: %v, may be stored is %t", i, r.Err, mayBeStored)
		}
	}
	if r := p.PublishAll(t.Context(), decisions("ws", 5)); r[4].Err != nil {
		t.Errorf("the window did not open again: %v", r[4].Err)
	}
	if r := p.PublishAll(ctx, decisions("late", 1)); !errors.Is(r[0].Err, stop) || errors.Is(r[0].Err, schemas.ErrNoAck) {
		t.Errorf("with an ended context: %v", r[0].Err)
	}
}

func TestAMessageIsStoredOnceAcrossARestartOfTheServer(t *testing.T) {
	t.Parallel()
	p, js := publisher(t, schemas.PublisherOptions{AckTimeout: time.Second})
	messages := decisions("ws", 200)
	if r := p.PublishAll(t.Context(), messages[:100]); r[99].Err != nil {
		t.Fatal(r[99].Err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := schematest.NATSServer(t).Restart(ctx); err != nil {
		t.Fatal(err)
	}
	left := messages
	for len(left) > 0 && ctx.Err() == nil {
		var again []schemas.Message
		for i, r := range p.PublishAll(ctx, left) {
			if r.Err != nil {
				again = append(again, left[i])
			}
		}
		left = again
	}
	if n := stored(t, js, schemas.StreamDecisions); len(left) > 0 || n != 200 {
		t.Errorf("%d messages were not stored; %d are in the stream, want 200", len(left), n)
	}
}
