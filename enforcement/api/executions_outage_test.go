package api_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// impatient callers wait for half a second.
func impatient(o *api.ExecutionsOptions) { o.Patience = 500 * time.Millisecond }

func TestRedisMayBeAwayForAMoment(t *testing.T) {
	t.Parallel()
	server := schematest.RedisServer(t)
	client := dial(t, server.URL())
	h := houseOver(t, client, limits(ptr[int64](10), nil), impatient)
	h.admit("before", "e")
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	_, err := h.Admit(t.Context(), asking("while", "e"))
	if !errors.Is(err, enforcement.ErrUnavailable) {
		t.Errorf("with Redis away: %v, want an error that wraps ErrUnavailable", err)
	}
	if took := time.Since(begun); took < 400*time.Millisecond || took > 3*time.Second {
		t.Errorf("the caller waited %s, want its patience of 500ms", took)
	}
	if n := len(h.decisions()); n != 1 {
		t.Errorf("the stream has %d decisions, want nothing for who got no answer", n)
	}
	patient := h.another()
	answered := make(chan error, 1)
	go func() {
		_, err := patient.Admit(t.Context(), asking("while", "e"))
		answered <- err
	}()
	h.eventually("a caller waits", func() bool { return patient.Waiting() == 1 && patient.Stats().Batches() > 1 })
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Errorf("who waited for Redis: %v", err)
	}
	if stats := h.Stats(); stats.Unavailable() != 1 || stats.Allowed() != 1 {
		t.Errorf("%d unavailable, %d allowed, want 1 of both", stats.Unavailable(), stats.Allowed())
	}
}

func TestAPausedRedisIsWaitedFor(t *testing.T) {
	t.Parallel()
	server := schematest.RedisServer(t)
	client, other := dial(t, server.URL()), dial(t, server.URL())
	h := houseOver(t, client, limits(ptr[int64](10), nil))
	h.admit("before", "e")
	if err := other.ClientPause(t.Context(), 700*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	// Who asks with a deadline of its own does not wait so long.
	late := asking("late", "e")
	late.Deadline = time.Now().Add(200 * time.Millisecond)
	if _, err := h.Admit(t.Context(), late); !errors.Is(err, enforcement.ErrUnavailable) {
		t.Errorf("past its deadline: %v, want an error that wraps ErrUnavailable", err)
	}
	if d := h.admit("while", "e"); !d.Admits() {
		t.Errorf("denied with %d", d.Code)
	}
}

func TestADeadlineThatPassedIsNotAsked(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(nil, nil))
	r := asking("x", "e")
	r.Deadline = time.Now().Add(-time.Second)
	if _, err := h.Admit(t.Context(), r); !errors.Is(err, enforcement.ErrUnavailable) {
		t.Errorf("%v, want an error that wraps ErrUnavailable", err)
	}
	if s := h.Stats(); s.Batches() != 0 || s.Unavailable() != 1 {
		t.Errorf("%d batches, %d unavailable, want 0 and 1", s.Batches(), s.Unavailable())
	}
}

func TestNATSMayBeAwayForAMoment(t *testing.T) {
	t.Parallel()
	server := schematest.NATSServer(t)
	h := newHouse(t, limits(ptr[int64](10), nil), impatient)
	h.admit("before", "e")
	server.Down()
	for range 2 {
		if _, err := h.Admit(t.Context(), asking("while", "e")); !errors.Is(err, enforcement.ErrUnavailable) {
			t.Errorf("with NATS away: %v, want an error that wraps ErrUnavailable", err)
		}
	}
	if got := h.outstanding(); got.Used != 2 {
		t.Errorf("%d are used, want the unheard allow charged once", got.Used)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.connected()
	d := h.admit("while", "e")
	if !d.Admits() || !d.Replayed {
		t.Errorf("after NATS is back: code %d, replayed %t; want the allow again", d.Code, d.Replayed)
	}
	if got := h.outstanding(); got.Used != 2 || got.Running != 2 {
		t.Errorf("%d used, %d run, want 2 of both", got.Used, got.Running)
	}
	if stored := h.decisions(); len(stored) != 2 || allows(stored) != 2 {
		t.Errorf("the stream has %d decisions that admit %d, want 2 of both", len(stored), allows(stored))
	}
}

// connected waits until the connection is back and JetStream answers on it.
func (h *house) connected() {
	h.Helper()
	h.eventually("JetStream is back", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := h.js.Stream(ctx, h.topology.Stream(schemas.StreamDecisions))
		return err == nil
	})
}

func TestAStreamThatIsGoneGivesNoAnswer(t *testing.T) {
	t.Parallel()
	// The client library asks a stream that does not answer for half a second.
	h := newHouse(t, limits(ptr[int64](10), nil), func(o *api.ExecutionsOptions) { o.Patience = 1500 * time.Millisecond })
	if err := h.js.DeleteStream(t.Context(), h.topology.Stream(schemas.StreamDecisions)); err != nil {
		t.Fatal(err)
	}
	_, err := h.Admit(t.Context(), asking("x", "e"))
	if !errors.Is(err, enforcement.ErrUnavailable) || !errors.Is(err, jetstream.ErrNoStreamResponse) {
		t.Errorf("%v, want ErrUnavailable and why", err)
	}
	if _, err := h.topology.Ensure(t.Context(), h.js); err != nil {
		t.Fatal(err)
	}
	if d := h.admit("x", "e"); !d.Admits() || h.outstanding().Used != 1 {
		t.Errorf("with the stream back: code %d, %d used", d.Code, h.outstanding().Used)
	}
}

func TestAnAnswerBeyondTheFenceIsAskedForAgain(t *testing.T) {
	t.Parallel()
	clock := &hand{}
	var asked atomic.Int64
	h := newHouse(t, limits(ptr[int64](10), nil), func(o *api.ExecutionsOptions) {
		o.Now = clock.now
		o.Enforcer = disturbed{Enforcer: o.Enforcer, before: func([]enforcement.Request) {
			if asked.Add(1) == 1 {
				clock.move(3 * time.Second) // as if the process had been asleep
			}
		}}
	})
	d := h.admit("x", "e")
	if !d.Replayed || asked.Load() != 2 || len(h.decisions()) != 1 {
		t.Errorf("asked %d times, replayed %t, %d decisions stored; want the second answer, a repeated one, alone",
			asked.Load(), d.Replayed, len(h.decisions()))
	}
}

func TestAPanicHurtsNobodyElse(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(ptr[int64](10), nil), impatient, func(o *api.ExecutionsOptions) {
		o.Enforcer = disturbed{Enforcer: o.Enforcer, before: func(all []enforcement.Request) {
			if all[0].ExecutionID == "poison" {
				panic("poison")
			}
		}}
	})
	if _, err := h.Admit(t.Context(), asking("poison", "e")); !errors.Is(err, enforcement.ErrUnavailable) {
		t.Errorf("%v, want an error that wraps ErrUnavailable", err)
	}
	if d := h.admit("x", "e"); !d.Admits() {
		t.Errorf("the next one: code %d", d.Code)
	}
}
