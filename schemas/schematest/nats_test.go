package schematest_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestEachTestHasANATSServerOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"one", "two", "three"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			js, err := jetstream.New(schematest.NATS(t))
			if err != nil {
				t.Fatal(err)
			}
			// Creating, not updating: a stream of another test would be in the way.
			_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{
				Name: "SAME", Description: name, Subjects: []string{"same.*"},
			})
			if err != nil {
				t.Fatal(err)
			}
			ack, err := js.Publish(t.Context(), "same.a", []byte("body"))
			if err != nil {
				t.Fatal(err)
			}
			if ack.Sequence != 1 {
				t.Errorf("the first message has sequence %d, want 1", ack.Sequence)
			}
		})
	}
}

func TestANATSServerKeepsItsStreamsOverARestart(t *testing.T) {
	t.Parallel()
	conn := schematest.NATS(t)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "KEPT", Subjects: []string{"kept"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "kept", []byte("body")); err != nil {
		t.Fatal(err)
	}
	reconnected := make(chan struct{}, 1)
	conn.SetReconnectHandler(func(*nats.Conn) { reconnected <- struct{}{} })
	if err := schematest.NATSServer(t).Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-reconnected:
	case <-t.Context().Done():
	}
	message, err := stream.GetMsg(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(message.Data); got != "body" {
		t.Errorf("after the restart message 1 is %q, want %q", got, "body")
	}
}
