package main

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

// mailroom is an installation's dead letters, and the streams that they come from.
type mailroom struct {
	*installation
	js jetstream.JetStream
}

func newMailroom(t testing.TB) *mailroom {
	t.Helper()
	m := &mailroom{installation: newInstallation(t)}
	m.js = m.jetStream()
	if _, err := (schemas.Topology{}).Ensure(t.Context(), m.js); err != nil {
		t.Fatal(err)
	}
	return m
}

// givenUpAt is when the letters of these tests were given up.
var givenUpAt = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// note is what a letter says that a test writes itself.
type note struct {
	room, kind, reason, subject string
	sequence                    uint64
	first                       time.Time
	truncated                   int
	body                        string
}

func (n note) message() *nats.Msg {
	m := nats.NewMsg(schemas.Topology{}.DeadLetter(n.room, n.kind))
	m.Data = []byte(n.body)
	for name, value := range map[string]string{
		"Headroom-Reason": n.reason, "Headroom-Subject": n.subject, "Headroom-Sequence": strconv.FormatUint(n.sequence, 10),
		"Headroom-Deliveries": "3", "Headroom-First": n.first.Format(time.RFC3339Nano), "Headroom-Last": givenUpAt.Format(time.RFC3339Nano),
	} {
		m.Header.Set(name, value)
	}
	if n.truncated > 0 {
		m.Header.Set("Headroom-Truncated", strconv.Itoa(n.truncated))
	}
	return m
}

// put writes a letter and returns its sequence.
func (m *mailroom) put(n note) uint64 {
	m.t.Helper()
	ack, err := m.js.PublishMsg(m.t.Context(), n.message())
	if err != nil {
		m.t.Fatal(err)
	}
	return ack.Sequence
}

// putMany writes n letters, in order, of the kind that kindOf says.
func (m *mailroom) putMany(n int, kindOf func(i int) string) {
	m.t.Helper()
	p, err := schemas.NewPublisher(m.js, schemas.PublisherOptions{AckTimeout: patience})
	if err != nil {
		m.t.Fatal(err)
	}
	defer p.Close()
	messages := make([]schemas.Message, n)
	for i := range messages {
		letter := note{
			room: "executions", kind: kindOf(i), reason: fmt.Sprintf("syntax: number %d", i+1), subject: "headroom.executions.requested.acme",
			sequence: uint64(i + 1), first: givenUpAt.Add(-time.Minute), body: "nonsense",
		}.message()
		messages[i] = schemas.Message{Subject: letter.Subject, Header: letter.Header, Body: letter.Data}
	}
	for _, result := range p.PublishAll(m.t.Context(), messages) {
		if result.Err != nil {
			m.t.Fatal(result.Err)
		}
	}
}

// stream is one of the installation's.
func (m *mailroom) stream(kind schemas.StreamKind) jetstream.Stream {
	m.t.Helper()
	stream, err := m.js.Stream(m.t.Context(), schemas.Topology{}.Stream(kind))
	if err != nil {
		m.t.Fatal(err)
	}
	return stream
}

// count is how many messages a stream has.
func (m *mailroom) count(kind schemas.StreamKind) int {
	m.t.Helper()
	return int(m.stream(kind).CachedInfo().State.Msgs)
}

// last is the newest message of a stream.
func (m *mailroom) last(kind schemas.StreamKind) *jetstream.RawStreamMsg {
	m.t.Helper()
	stream := m.stream(kind)
	raw, err := stream.GetMsg(m.t.Context(), stream.CachedInfo().State.LastSeq)
	if err != nil {
		m.t.Fatal(err)
	}
	return raw
}

// letters is the list, newest first.
func (m *mailroom) letters(flags ...string) []deadLetter {
	m.t.Helper()
	var all []deadLetter
	m.mustJSON(&all, append([]string{"deadletters", "list"}, flags...)...)
	return all
}

// awaitLetter waits for the n-th letter ever written and returns it.
func (m *mailroom) awaitLetter(n uint64) deadLetter {
	m.t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(patience)
	for m.stream(schemas.StreamDeadLetters).CachedInfo().State.LastSeq < n {
		select {
		case <-again.C:
		case <-deadline:
			m.t.Fatalf("no dead letter %d in time", n)
		}
	}
	return m.letters("--limit", "1")[0]
}

// box is the dead letters as the commands have them.
func (m *mailroom) box(work func(ctx context.Context, b *letterBox)) {
	m.t.Helper()
	p := &program{getenv: environ(m.settings), stdout: m.t.Output(), stderr: m.t.Output()}
	err := p.withLetters(m.t.Context(), func(b *letterBox) error {
		work(m.t.Context(), b)
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

func BenchmarkDeadLettersOf100000(b *testing.B) {
	m := newMailroom(b)
	const n = 100_000
	m.putMany(n, func(i int) string { return [...]string{"requested", "completed"}[min(i/(n-1), 1)] })
	for name, f := range map[string]struct {
		filter letterFilter
		limit  int
	}{
		"newest 100":             {letterFilter{}, 100},
		"newest 100 of a kind":   {letterFilter{Kind: "requested"}, 100},
		"the only one of a kind": {letterFilter{Kind: "completed"}, 100},
		"none of a kind":         {letterFilter{Kind: "renewed"}, 100},
		"all":                    {letterFilter{}, n},
	} {
		b.Run(name, func(b *testing.B) {
			m.box(func(ctx context.Context, box *letterBox) {
				for b.Loop() {
					if _, err := box.newest(ctx, f.filter, f.limit); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
	b.Run("the whole command", func(b *testing.B) {
		for b.Loop() {
			m.letters()
		}
	})
}
