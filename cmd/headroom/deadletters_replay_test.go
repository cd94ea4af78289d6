package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// broken is an enforcer that fails at whatever it is asked.
type broken struct{}

func (broken) Admit(context.Context, []enforcement.Request) []enforcement.Result {
	panic("a fault of this version")
}

func (broken) Withdraw(context.Context, []enforcement.Request) []enforcement.Result {
	panic("a fault of this version")
}

func (broken) Unavailable(enforcement.Request, string, time.Time) schemas.DecisionMade {
	panic("a fault of this version")
}

func (broken) Extend(context.Context, []enforcement.Progress) []enforcement.Extension {
	panic("a fault of this version")
}

func (broken) Release(context.Context, []enforcement.Completion) []enforcement.Release {
	panic("a fault of this version")
}

func (broken) OpenPeriods(context.Context, []string) []error { panic("a fault of this version") }

// giveUp has a version of Headroom with a fault give up what is in the stream.
func (m *mailroom) giveUp(letters uint64) {
	m.t.Helper()
	work, err := consumers.New(consumers.Options{
		NATS: schematest.NATS(m.t), JetStream: m.js, Enforcer: broken{}, MaxAttempts: 2, Log: schematest.Logger(m.t),
	})
	if err != nil {
		m.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(m.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- work.Run(ctx) }()
	m.awaitLetter(letters)
	stop()
	if err := <-ended; err != nil {
		m.t.Fatal(err)
	}
}

func TestARequestThatWasGivenUpIsReplayedAndAnsweredOnce(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	m.must("plans", "apply", demoCatalog)
	body, err := schemas.Encode(schemas.NewEvent("test", "request-e1", time.Now(), schemas.ExecutionRequested{WorkspaceID: "ws", ExecutionID: "e1"}))
	if err != nil {
		t.Fatal(err)
	}
	publish := func(id string) {
		_, err := m.js.PublishMsg(t.Context(), &nats.Msg{Subject: "headroom.executions.requested.ws", Data: body, Header: nats.Header{
			"Nats-Msg-Id": {id}, "traceparent": {"00-trace"}, "Headroom-Reply": {"_INBOX.gone"},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	publish("request-e1")
	m.giveUp(1)
	if l := m.letters()[0]; !strings.HasPrefix(l.Reason, "gave up after 2 attempts: handler panicked") || l.Deliveries != 2 {
		t.Fatalf("the letter is %+v", l)
	}
	m.serve().awaitStatus(http.StatusOK) // the version without the fault

	// The window in which the stream drops a repetition of the first id is 2 minutes.
	if text := m.must("deadletters", "replay", "1"); text != "1  published again as 2 of HEADROOM_EXECUTIONS\n" {
		t.Errorf("replay prints %q", text)
	}
	first := m.decision(m.js, "ws", "e1")
	if !first.Allowed || first.Used != 1 || first.RequestEventID != "request-e1" {
		t.Errorf("the decision is %+v", first)
	}
	again := m.last(schemas.StreamExecutions)
	if !bytes.Equal(again.Data, body) || again.Header.Get("traceparent") != "00-trace" || again.Header.Get("Headroom-Reply") != "" || again.Header.Get("Headroom-Reason") != "" {
		t.Errorf("published again is %v %s", again.Header, again.Data)
	}
	if left := m.letters(); len(left) != 0 {
		t.Errorf("letters are left: %+v", left)
	}
	publish("from its own publisher, once more")
	second := m.decide(m.js, "ws", "e2")
	if second.Used != 2 {
		t.Errorf("the next execution is number %d, want 2: the replayed one counts once", second.Used)
	}
	if _, _, err := m.run("deadletters", "replay", "1"); exitCode(err) != exitFailed || !strings.Contains(err.Error(), "there is no dead letter 1") {
		t.Errorf("a second replay: %v", err)
	}
}

func TestALetterThatFailsAgainIsANewLetter(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	m.must("plans", "apply", demoCatalog)
	m.serve().awaitStatus(http.StatusOK)
	const n = 70 // more than two batches
	for i := range n {
		if _, err := m.js.Publish(t.Context(), "headroom.executions.completed.acme", fmt.Appendf(nil, "nonsense %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.js.Publish(t.Context(), "headroom.executions.requested.acme", []byte("other nonsense")); err != nil {
		t.Fatal(err)
	}
	// The ledger gives completions up as well, in a letter under the same message id.
	m.awaitLetter(n + 1)
	kept := m.letters("--kind", "requested")
	if text := m.must("deadletters", "replay", "--all", "--yes", "--kind", "requested"); text != "1 of 1 dead letter published again\n" {
		t.Errorf("replay prints %q", text)
	}
	m.awaitLetter(n + 2)
	if left := m.letters("--kind", "requested"); len(left) != 1 || left[0].Sequence == kept[0].Sequence || left[0].Reason != kept[0].Reason {
		t.Errorf("requested are left: %+v, want a new one like %+v", left, kept)
	}
	if text := m.must("deadletters", "replay", "--all", "--yes"); text != "71 of 71 dead letters published again\n" {
		t.Errorf("replay prints %q", text)
	}
	m.awaitLetter(n + 2 + 71)
	if left := m.letters(); len(left) != 71 || left[70].Sequence <= n+2 {
		t.Errorf("%d letters are left, the oldest %d; want 71 new ones", len(left), left[len(left)-1].Sequence)
	}
}

func TestACutLetterIsReplayedFromItsStreamWhileItIsThere(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	m.must("plans", "apply", demoCatalog)
	m.serve().awaitStatus(http.StatusOK)
	body := bytes.Repeat([]byte("nonsense"), (1<<20-512)/8)
	_, err := m.js.PublishMsg(t.Context(), &nats.Msg{Subject: "headroom.executions.requested.acme", Data: body, Header: nats.Header{"traceparent": {"00-big"}, "Headroom-Reply": {"_INBOX.x"}}})
	if err != nil {
		t.Fatal(err)
	}
	m.awaitLetter(1)
	if text := m.must("deadletters", "show", "1"); !hasLine(text, "body", "the first ", fmt.Sprintf(" of %d bytes", len(body))) {
		t.Errorf("show says nothing of the cut:\n%.800s", text)
	}
	m.must("deadletters", "replay", "1")
	again := m.last(schemas.StreamExecutions)
	if again.Sequence != 2 || !bytes.Equal(again.Data, body) || again.Header.Get("traceparent") != "00-big" || again.Header.Get("Headroom-Reply") != "" {
		t.Errorf("published again is %d bytes as %d with %v, want %d bytes", len(again.Data), again.Sequence, again.Header, len(body))
	}
	m.awaitLetter(2)
	if err := m.stream(schemas.StreamExecutions).DeleteMsg(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.run("deadletters", "replay", "2"); exitCode(err) != exitFailed || !strings.Contains(err.Error(), "the original is no longer there") {
		t.Errorf("without its original: %v", err)
	}
	if left := m.letters(); len(left) != 1 || left[0].Sequence != 2 {
		t.Errorf("letters left are %+v, want the second", left)
	}
}

func TestACutLetterIsNotTakenForAnotherMessage(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	ack, err := m.js.Publish(t.Context(), "headroom.executions.requested.acme", []byte("beginning and end"))
	if err != nil {
		t.Fatal(err)
	}
	stored := m.last(schemas.StreamExecutions).Time
	good := note{room: "executions", kind: "requested", reason: "x", subject: "headroom.executions.requested.acme", sequence: ack.Sequence, first: stored, truncated: 17, body: "beginning"}
	for name, change := range map[string]func(*note){
		"another time":    func(n *note) { n.first = stored.Add(time.Nanosecond) },
		"another subject": func(n *note) { n.subject = "headroom.executions.requested.other" },
		"another body":    func(n *note) { n.body = "begun" },
		"no sequence":     func(n *note) { n.sequence = 0 },
	} {
		letter := good
		change(&letter)
		sequence := m.put(letter)
		if _, _, err := m.run("deadletters", "replay", number(int64(sequence))); exitCode(err) != exitFailed || !strings.Contains(err.Error(), "no longer there") {
			t.Errorf("%s: %v, want that the original is not there", name, err)
		}
	}
	if n := m.count(schemas.StreamExecutions); n != 1 {
		t.Errorf("%d messages, want 1", n)
	}
	m.must("deadletters", "replay", number(int64(m.put(good))))
	if again := m.last(schemas.StreamExecutions); string(again.Data) != "beginning and end" {
		t.Errorf("published again is %q", again.Data)
	}
}

// stuck is a stream that removes nothing: a process that was killed before it could.
type stuck struct{ jetstream.Stream }

func (stuck) DeleteMsg(context.Context, uint64) error { return errors.New("killed") }

func TestAReplayThatWasInterruptedIsRunAgain(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	m.putMany(3, func(int) string { return "requested" })
	m.box(func(ctx context.Context, b *letterBox) {
		b.stream = stuck{b.stream}
		publisher, err := schemas.NewPublisher(b.js, schemas.PublisherOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer publisher.Close()
		r := replayer{letterBox: b, publisher: publisher}
		if err := r.run(ctx, []uint64{1, 2}); err == nil || !strings.Contains(err.Error(), "run the command again") {
			t.Errorf("error is %v, want that the letters are still there", err)
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if err := r.run(ended, []uint64{3}); err == nil || !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("error is %v, want that it was interrupted", err)
		}
	})
	if n := m.count(schemas.StreamExecutions); n != 2 || len(m.letters()) != 3 {
		t.Fatalf("%d messages and %d letters, want 2 and 3", n, len(m.letters()))
	}
	if text := m.must("deadletters", "replay", "--all", "--yes"); text != "3 of 3 dead letters published again\n" {
		t.Errorf("replay prints %q", text)
	}
	if n := m.count(schemas.StreamExecutions); n != 3 || len(m.letters()) != 0 {
		t.Errorf("%d messages and %d letters, want 3 and none", n, len(m.letters()))
	}
}

func TestAReplayThatTheStreamTookForSomethingElseKeepsItsLetter(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	m.putMany(1, func(int) string { return "requested" })
	m.box(func(ctx context.Context, b *letterBox) {
		l, err := b.get(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.js.Publish(ctx, l.Subject, []byte("a thief's"), jetstream.WithMsgID(b.replayID(l))); err != nil {
			t.Fatal(err)
		}
	})
	if _, _, err := m.run("deadletters", "replay", "1"); exitCode(err) != exitFailed || !strings.Contains(err.Error(), "another message, 1 of HEADROOM_EXECUTIONS") {
		t.Errorf("error is %v, want that another message has its id", err)
	}
	if len(m.letters()) != 1 {
		t.Error("the letter was removed")
	}
}

func TestALetterIsPublishedNowhereButInItsStreams(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	heard, err := schematest.NATS(t).SubscribeSync("headroom.api.>")
	if err != nil {
		t.Fatal(err)
	}
	subjects := []string{
		"$JS.API.STREAM.DELETE.HEADROOM_EXECUTIONS", "headroom.api.admit", "headroom.deadletters.executions.requested", "",
		"headroom.executions.requested", "headroom.executions.requested.a.b", "headroom.executions.requested.*",
		"headroom.executions.requested.>", "headroom.executions.requested.", "headroom.executions.deleted.acme", "other.executions.requested.acme",
	}
	for _, subject := range subjects {
		sequence := m.put(note{room: "executions", kind: "requested", reason: "forged", subject: subject, sequence: 1, first: givenUpAt, body: "{}"})
		_, _, err := m.run("deadletters", "replay", number(int64(sequence)))
		if exitCode(err) != exitFailed || !strings.Contains(err.Error(), "no stream of this installation takes its subject") {
			t.Errorf("%q: %v, want that it is refused", subject, err)
		}
		if text := m.must("deadletters", "show", number(int64(sequence))); !hasLine(text, "original", "unknown") {
			t.Errorf("%q: show prints\n%s", subject, text)
		}
	}
	if got := len(m.letters()); got != len(subjects) {
		t.Errorf("%d letters are left, want %d", got, len(subjects))
	}
	if n := m.count(schemas.StreamExecutions); n != 0 {
		t.Errorf("%d messages were published", n)
	}
	if n, _, err := heard.Pending(); n != 0 || err != nil {
		t.Errorf("%d questions were asked, %v", n, err)
	}
}

func TestARowOfTheOutboxIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	for subject, want := range map[string]string{
		"headroom.subscriptions.renewed.acme": "headroom invalidate acme",
		"headroom.plans.invalidated.acme":     "headroom invalidate acme",
		"headroom.usage.threshold.acme":       "no decision depends on it",
		"plan.retired.acme":                   "this version knows no such kind",
	} {
		sequence := m.put(note{room: "subscriptions", kind: "outbox", reason: "syntax: data", subject: subject, sequence: 9, body: "{}"})
		_, _, err := m.run("deadletters", "replay", number(int64(sequence)))
		if exitCode(err) != exitFailed || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "drop the letter") {
			t.Errorf("%s: %v, want %q in it", subject, err, want)
		}
		if text := m.must("deadletters", "show", number(int64(sequence))); !hasLine(text, "original", "table outbox, position 9") {
			t.Errorf("%s: show prints\n%s", subject, text)
		}
	}
	if n := len(m.letters()); n != 4 {
		t.Errorf("%d letters are left, want 4", n)
	}
}

func TestAnotherPrefixHasLettersOfItsOwn(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	m.putMany(2, func(int) string { return "requested" })
	other := schemas.Topology{Prefix: "acme.eu"}
	if _, err := other.Ensure(t.Context(), m.js); err != nil {
		t.Fatal(err)
	}
	letter := note{subject: other.Completed("ws"), reason: "x", sequence: 1, first: givenUpAt, body: "{}"}.message()
	letter.Subject = other.DeadLetter("executions", "completed")
	if _, err := m.js.PublishMsg(t.Context(), letter); err != nil {
		t.Fatal(err)
	}
	eu := &mailroom{installation: m.with(map[string]string{"HEADROOM_SUBJECT_PREFIX": "acme.eu"}), js: m.js}
	if got := eu.letters("--room", "executions"); len(got) != 1 || got[0].Kind != "completed" || got[0].Room != "executions" {
		t.Errorf("the letters are %+v", got)
	}
	if text := eu.must("deadletters", "replay", "1"); text != "1  published again as 1 of ACME_EU_EXECUTIONS\n" {
		t.Errorf("replay prints %q", text)
	}
	if len(eu.letters()) != 0 || len(m.letters()) != 2 {
		t.Errorf("%d and %d letters are left, want none and 2", len(eu.letters()), len(m.letters()))
	}
}
