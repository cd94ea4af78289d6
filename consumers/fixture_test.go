package consumers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// world is a NATS server with Headroom's streams, and whoever works on it.
type world struct {
	testing.TB
	nats     *nats.Conn
	js       jetstream.JetStream
	topology schemas.Topology
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{TB: t, nats: schematest.NATS(t)}
	var err error
	if w.js, err = jetstream.New(w.nats); err != nil {
		t.Fatal(err)
	}
	if _, err := w.topology.Ensure(t.Context(), w.js); err != nil {
		t.Fatal(err)
	}
	return w
}

// running is a process's consumers at work.
type running struct {
	*consumers.Consumers
	stop  context.CancelFunc
	ended chan error
}

// start runs consumers until the test ends or stops them, and waits until they are ready.
func (w *world) start(e consumers.Enforcer, set ...func(*consumers.Options)) *running {
	w.Helper()
	o := consumers.Options{NATS: w.nats, JetStream: w.js, Topology: w.topology, Enforcer: e, Log: schematest.Logger(w.TB)}
	for _, each := range set {
		each(&o)
	}
	made, err := consumers.New(o)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Consumers: made, stop: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- made.Run(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-r.ended; err != nil {
			w.Errorf("consumers ended with an error: %v", err)
		}
	})
	w.eventually("consumers are ready", made.Ready)
	return r
}

// halt stops the consumers and waits until they have ended.
func (w *world) halt(r *running) {
	w.Helper()
	r.stop()
	err := <-r.ended
	r.ended <- nil
	if err != nil {
		w.Errorf("consumers ended with an error: %v", err)
	}
}

// eventually asks again and again until it is so. It is for what a server holds;
// what can be subscribed to is waited for with that.
func (w *world) eventually(what string, is func() bool) {
	w.Helper()
	schematest.Eventually(w, what, is)
}

// publish stores a body on a subject, with headers if given.
func (w *world) publish(subject string, body []byte, header ...nats.Header) {
	w.Helper()
	m := &nats.Msg{Subject: subject, Data: body}
	if len(header) > 0 {
		m.Header = header[0]
	}
	if _, err := w.js.PublishMsg(context.Background(), m); err != nil {
		w.Fatal(err)
	}
}

func (w *world) request(ws, execution string, header ...nats.Header) {
	w.Helper()
	w.publish(w.topology.Requested(ws), requestBody(w, ws, execution, nil), header...)
}

func (w *world) complete(ws, execution string, outcome schemas.Outcome) {
	w.Helper()
	w.publish(w.topology.Completed(ws), body(w, "done-"+execution,
		schemas.ExecutionCompleted{WorkspaceID: ws, ExecutionID: execution, Outcome: outcome}))
}

func requestBody(w *world, ws, execution string, deadline *time.Time) []byte {
	w.Helper()
	return body(w, "ask-"+execution, schemas.ExecutionRequested{WorkspaceID: ws, ExecutionID: execution, Deadline: deadline})
}

func body[T schemas.Data](w *world, id string, data T) []byte {
	w.Helper()
	b, err := schemas.Encode(schemas.NewEvent("test", id, time.Now(), data))
	if err != nil {
		w.Fatal(err)
	}
	return b
}

// stored is the messages of a stream so far, in order. They are read in bulk: asked for
// one by one they are most of the cost of a test with thousands.
func (w *world) stored(kind schemas.StreamKind) []*jetstream.RawStreamMsg {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stream, err := w.js.Stream(ctx, w.topology.Stream(kind))
	if err != nil {
		w.Fatal(err)
	}
	n := int(stream.CachedInfo().State.Msgs)
	if n == 0 {
		return nil
	}
	reader, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true})
	if err != nil {
		w.Fatal(err)
	}
	var all []*jetstream.RawStreamMsg
	for len(all) < n {
		fetched, err := reader.Fetch(n-len(all), jetstream.FetchContext(ctx))
		if err != nil {
			w.Fatal(err)
		}
		for m := range fetched.Messages() {
			all = append(all, w.raw(m))
		}
		if err := fetched.Error(); err != nil {
			w.Fatalf("read %s after %d of %d messages: %v", kind, len(all), n, err)
		}
	}
	if err := stream.DeleteConsumer(ctx, reader.CachedInfo().Name); err != nil {
		w.Fatal(err)
	}
	return all
}

func (w *world) raw(m jetstream.Msg) *jetstream.RawStreamMsg {
	w.Helper()
	about, err := m.Metadata()
	if err != nil {
		w.Fatal(err)
	}
	return &jetstream.RawStreamMsg{Subject: m.Subject(), Sequence: about.Sequence.Stream, Header: m.Headers(), Data: m.Data(), Time: about.Timestamp}
}

// await waits for the stream to hold so many messages, and returns them.
func (w *world) await(kind schemas.StreamKind, n int) []*jetstream.RawStreamMsg {
	w.Helper()
	w.eventually(fmt.Sprintf("%d messages in %s", n, kind), func() bool { return w.count(kind) >= n })
	return w.stored(kind)
}

func (w *world) count(kind schemas.StreamKind) int {
	stream, err := w.js.Stream(context.Background(), w.topology.Stream(kind))
	if err != nil {
		w.Fatal(err)
	}
	return int(stream.CachedInfo().State.Msgs)
}

// decisions waits for so many decisions and returns them.
func (w *world) decisions(n int) []schemas.DecisionMade {
	w.Helper()
	var all []schemas.DecisionMade
	for _, m := range w.await(schemas.StreamDecisions, n) {
		event, err := schemas.Decode[schemas.DecisionMade](m.Subject, m.Data)
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, event.Data)
	}
	return all
}

// decision waits for the n-th decision, from 1, of a stream that keeps them all.
func (w *world) decision(n int) schemas.DecisionMade {
	w.Helper()
	w.eventually(fmt.Sprintf("decision %d", n), func() bool { return w.count(schemas.StreamDecisions) >= n })
	stream, err := w.js.Stream(context.Background(), w.topology.Stream(schemas.StreamDecisions))
	if err != nil {
		w.Fatal(err)
	}
	m, err := stream.GetMsg(context.Background(), uint64(n))
	if err != nil {
		w.Fatal(err)
	}
	event, err := schemas.Decode[schemas.DecisionMade](m.Subject, m.Data)
	if err != nil {
		w.Fatal(err)
	}
	return event.Data
}

// settled waits until a consumer has nothing left of what is stored for it now:
// all delivered, all acknowledged or ended.
func (w *world) settled(kind string) {
	w.Helper()
	of := schemas.StreamExecutions
	if kind == schemas.ConsumerRenewed {
		of = schemas.StreamSubscriptions
	}
	stream, err := w.js.Stream(context.Background(), w.topology.Stream(of))
	if err != nil {
		w.Fatal(err)
	}
	consumer, err := stream.Consumer(context.Background(), kind)
	if err != nil {
		w.Fatal(err)
	}
	last := uint64(0)
	if m, err := stream.GetLastMsgForSubject(context.Background(), consumer.CachedInfo().Config.FilterSubject); err == nil {
		last = m.Sequence
	}
	w.eventually("all messages settled for "+kind, func() bool {
		info, err := consumer.Info(context.Background())
		if err != nil {
			w.Fatal(err)
		}
		return info.Delivered.Stream >= last && info.NumAckPending == 0
	})
}

// counts are the consumers' counts once they have ended.
func (w *world) counts(r *running) *consumers.Stats {
	w.Helper()
	w.halt(r)
	return r.Stats()
}
