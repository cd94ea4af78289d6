package consumers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/enforcement/ledger"
)

// tail reads a stream upwards from a position: in order, without holes, without
// acknowledgements.
type tail struct {
	stream  string
	subject string
	bytes   int // most bytes to have on their way here
	read    func(m *message, remembered time.Duration) entry
}

// errHole means that messages were lost on their way here; they are read again
// from the position.
var errHole = errors.New("messages were lost on the way")

// tailIdle is how long the server keeps the consumer of a tail that is gone.
const tailIdle = time.Minute

// follow reads on from the opening's position until ctx ends.
func (t tail) follow(ctx context.Context, js jetstream.JetStream, from opening) error {
	consumer, err := js.CreateConsumer(ctx, t.stream, jetstream.ConsumerConfig{
		Description:       "the ledger's reading, from its position on",
		FilterSubject:     t.subject,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       from.position + 1,
		AckPolicy:         jetstream.AckNonePolicy,
		InactiveThreshold: tailIdle,
		MemoryStorage:     true,
		Replicas:          1,
	})
	if err != nil {
		return fmt.Errorf("read %s from %d: %w", t.stream, from.position+1, err)
	}
	end := func(err error) {
		select {
		case from.ended <- fmt.Errorf("read %s: %w", t.stream, err):
		default:
		}
	}
	consuming, err := consumer.Consume(t.receive(ctx, from, end), jetstream.PullMaxMessagesWithBytesLimit(2*foldMost, t.bytes),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) { end(err) }))
	if err != nil {
		return fmt.Errorf("read %s from %d: %w", t.stream, from.position+1, err)
	}
	closed := consuming.Closed()
	context.AfterFunc(ctx, consuming.Stop)
	go func() {
		defer close(from.done)
		<-closed
		end(errors.New("the reading ended"))
		t.leave(ctx, js, consumer.CachedInfo().Name)
	}()
	return nil
}

// leave removes the consumer. If that fails the server does so after tailIdle.
func (t tail) leave(ctx context.Context, js jetstream.JetStream, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = js.DeleteConsumer(ctx, t.stream, name)
}

// receive hands on what is delivered, for as long as nothing is missing in it.
func (t tail) receive(ctx context.Context, from opening, end func(error)) jetstream.MessageHandler {
	var delivered uint64
	return func(raw jetstream.Msg) {
		meta, err := raw.Metadata()
		if err != nil || meta.Sequence.Consumer != delivered+1 {
			end(errors.Join(errHole, err))
			return
		}
		select {
		case from.out <- t.entry(raw, meta, from):
			delivered++
		case <-ctx.Done(): // what is not handed on is missing, and so nothing behind it is
		}
	}
}

// opening is where a tail starts, and where its entries and the error that ends
// it go. done is closed when no more will come.
type opening struct {
	source     string
	position   uint64
	remembered time.Duration
	out        chan<- entry
	ended      chan<- error
	done       chan struct{}
}

// entry reads a message. One that makes the reading panic is as good as one that
// cannot be read: it must not stop the ledger for ever.
func (t tail) entry(raw jetstream.Msg, meta *jetstream.MsgMetadata, from opening) (e entry) {
	m := &message{
		subject: raw.Subject(), body: raw.Data(), header: raw.Headers(),
		sequence: meta.Sequence.Stream, stream: meta.Stream, stored: meta.Timestamp, delivered: meta.NumDelivered,
	}
	defer func() {
		if value := recover(); value != nil {
			e = entry{message: m, fault: &panicked{value: value, stack: debug.Stack()}}
		}
		e.source = from.source
	}()
	return t.read(m, from.remembered)
}

// open finds the position to read on from. A stream that ends before its
// position lost its end: what it writes next takes the same numbers, and is new.
func (t tail) open(ctx context.Context, js jetstream.JetStream, store *ledger.Store, log *slog.Logger) (opening, error) {
	stream, err := js.Stream(ctx, t.stream)
	if err != nil {
		return opening{}, fmt.Errorf("open stream %s: %w", t.stream, err)
	}
	info := stream.CachedInfo()
	from := opening{source: ledger.Source(t.stream, info.Created), remembered: info.Config.Duplicates, done: make(chan struct{})}
	from.position, err = store.Position(ctx, from.source)
	if err != nil {
		return opening{}, err
	}
	first, last := info.State.FirstSeq, info.State.LastSeq
	if last < from.position {
		log.ErrorContext(ctx, "stream lost its end, the ledger reads on from there", "stream", t.stream,
			"position", from.position, "last_sequence", last)
		if err := store.Rewind(ctx, from.source, from.position, last); err != nil {
			return opening{}, err
		}
		from.position = last
	}
	if from.position > 0 && first > from.position+1 {
		log.ErrorContext(ctx, "stream dropped messages that the ledger had not read", "stream", t.stream,
			"position", from.position, "first_sequence", first)
	}
	return from, nil
}
