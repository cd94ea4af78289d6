package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// hearing runs Invalidations over a connection of its own, and returns when they hear.
func hearing(t *testing.T) listener {
	t.Helper()
	l := newListener()
	news := client.NewInvalidations(client.InvalidationsOptions{
		JetStream: connect(t, schematest.NATSURL(t)), Plans: l, Log: schematest.Logger(t),
	})
	runs(t, news.Run)
	l.hears(t, expired)
	return l
}

func TestACacheIsToldOfEachInvalidationAndOfNothingElse(t *testing.T) {
	t.Parallel()
	js := plansStream(t)
	invalidate(t, js, "ws_before", 1)
	l := hearing(t)
	invalidate(t, js, "ws_a", 7)
	l.hears(t, told{"ws_a", 7})
	invalidate(t, js, "ws_b", 0)
	l.hears(t, told{"ws_b", 0})
	for i := range int64(500) {
		invalidate(t, js, "ws_c", i+1)
	}
	for i := range int64(500) {
		l.hears(t, told{"ws_c", i + 1})
	}
	l.quiet(t)
}

func TestEachProcessHearsOfAnInvalidation(t *testing.T) {
	t.Parallel()
	js := plansStream(t)
	one, other := hearing(t), hearing(t)
	invalidate(t, js, "ws", 3)
	one.hears(t, told{"ws", 3})
	other.hears(t, told{"ws", 3})
}

func TestAMalformedInvalidationDropsWhatItsSubjectNames(t *testing.T) {
	t.Parallel()
	js := plansStream(t)
	l := hearing(t)
	for _, body := range []string{"{", `{"specversion":"1.0"}`} {
		if _, err := js.Publish(t.Context(), schemas.Topology{}.Invalidated("ws_odd"), []byte(body)); err != nil {
			t.Fatal(err)
		}
		l.hears(t, told{"ws_odd", 0})
	}
	invalidate(t, js, "ws_after", 1)
	l.hears(t, told{"ws_after", 1})
}

// Whatever the server lost, everything is read again and what follows is heard.
func TestALossMakesEverythingBeReadAgain(t *testing.T) {
	t.Parallel()
	name := schemas.Topology{}.Stream(schemas.StreamPlans)
	for what, lose := range map[string]func(t *testing.T, js jetstream.JetStream){
		"the connection": func(t *testing.T, js jetstream.JetStream) {
			restart(t)
			invalidate(t, js, "ws_meanwhile", 2)
		},
		"the consumer": func(t *testing.T, js jetstream.JetStream) {
			stream, err := js.Stream(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			for consumer := range stream.ConsumerNames(t.Context()).Name() {
				if err := stream.DeleteConsumer(t.Context(), consumer); err != nil {
					t.Fatal(err)
				}
			}
		},
		"the stream": func(t *testing.T, js jetstream.JetStream) {
			if err := js.DeleteStream(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			ensure(t, js)
		},
		"everything it had": func(t *testing.T, js jetstream.JetStream) {
			if err := js.DeleteStream(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			restart(t)
			ensure(t, js)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			js := plansStream(t)
			for i := range int64(5) { // a new stream begins below this
				invalidate(t, js, "ws_before", i+1)
			}
			l := hearing(t)
			lose(t, js)
			// It may hear what comes while it is about to begin again, or read it.
			l.untilHeard(t, js)
		})
	}
}

// untilHeard publishes news until one is heard, after an expiry.
func (l listener) untilHeard(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	hasExpired := false
	deadline := time.After(patience)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case got := <-l:
			if hasExpired && got.Workspace == "ws_after" {
				return
			}
			hasExpired = hasExpired || got == expired
		case <-again.C:
			invalidate(t, js, "ws_after", 1)
		case <-deadline:
			t.Fatalf("nothing was heard again; expired: %v", hasExpired)
		}
	}
}

func restart(t *testing.T) {
	t.Helper()
	if err := schematest.NATSServer(t).Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func ensure(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(patience)
	for {
		_, err := (schemas.Topology{}).Ensure(t.Context(), js)
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatal(err)
		}
	}
}

func TestEventsThatWereDeletedUnheardMakeEverythingBeReadAgain(t *testing.T) {
	t.Parallel()
	js := plansStream(t)
	l := hearing(t)
	invalidate(t, js, "ws", 1)
	l.hears(t, told{"ws", 1})
	stream, err := js.Stream(t.Context(), schemas.Topology{}.Stream(schemas.StreamPlans))
	if err != nil {
		t.Fatal(err)
	}
	// As if 98 more had come and gone.
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSequence(100)); err != nil {
		t.Fatal(err)
	}
	invalidate(t, js, "ws", 2)
	l.hears(t, told{"ws", 2})
	l.hears(t, expired)
	invalidate(t, js, "ws", 3)
	l.hears(t, told{"ws", 3})
	l.quiet(t)
}

func TestInvalidationsWaitForTheStream(t *testing.T) {
	t.Parallel()
	l := newListener()
	news := client.NewInvalidations(client.InvalidationsOptions{
		JetStream: connect(t, schematest.NATSURL(t)), Plans: l, Log: schematest.Logger(t),
	})
	runs(t, news.Run)
	js := plansStream(t)
	l.hears(t, expired)
	invalidate(t, js, "ws", 1)
	l.hears(t, told{"ws", 1})
}

func TestTheHandlersOfTheConnectionAreLeftAlone(t *testing.T) {
	t.Parallel()
	plansStream(t)
	lost, back := make(chan struct{}, 10), make(chan struct{}, 10)
	js := connect(t, schematest.NATSURL(t))
	js.Conn().SetDisconnectErrHandler(func(*nats.Conn, error) { lost <- struct{}{} })
	js.Conn().SetReconnectHandler(func(*nats.Conn) { back <- struct{}{} })
	l := newListener()
	news := client.NewInvalidations(client.InvalidationsOptions{JetStream: js, Plans: l, Log: schematest.Logger(t)})
	runs(t, news.Run)
	l.hears(t, expired)
	restart(t)
	for name, called := range map[string]chan struct{}{"disconnect": lost, "reconnect": back} {
		select {
		case <-called:
		case <-time.After(patience):
			t.Errorf("the %s handler was not called", name)
		}
	}
}

func TestAClosedConnectionEndsInvalidationsWithAnError(t *testing.T) {
	t.Parallel()
	plansStream(t)
	js := connect(t, schematest.NATSURL(t))
	l := newListener()
	news := client.NewInvalidations(client.InvalidationsOptions{JetStream: js, Plans: l, Log: schematest.Logger(t)})
	ended := make(chan error, 1)
	go func() { ended <- news.Run(context.WithoutCancel(t.Context())) }()
	l.hears(t, expired)
	js.Conn().Close()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("Run ended without an error")
		}
	case <-time.After(patience):
		t.Fatal("Run did not end")
	}
}

func TestHowLongAgoAnEventWasIsTold(t *testing.T) {
	t.Parallel()
	js := plansStream(t)
	l, after := newListener(), make(chan time.Duration, 10)
	news := client.NewInvalidations(client.InvalidationsOptions{
		JetStream: connect(t, schematest.NATSURL(t)), Plans: l, Log: schematest.Logger(t),
		Applied: func(d time.Duration) { after <- d },
	})
	runs(t, news.Run)
	l.hears(t, expired)
	for name, c := range map[string]struct{ ago, least time.Duration }{
		"an hour ago":                    {time.Hour, time.Hour},
		"by a clock that is ahead of us": {-time.Hour, 0},
	} {
		if _, err := js.Publish(t.Context(), schemas.Topology{}.Invalidated("ws"), eventBody(t, "ws", 1, time.Now().Add(-c.ago))); err != nil {
			t.Fatal(err)
		}
		select {
		case d := <-after:
			if d < c.least || d > c.least+patience {
				t.Errorf("%s: told %s, want %s and little more", name, d, c.least)
			}
		case <-time.After(patience):
			t.Fatalf("%s: nothing was told", name)
		}
	}
}
