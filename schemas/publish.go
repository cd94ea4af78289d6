package schemas

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// DefaultPublishWindow and DefaultAckTimeout are a Publisher's settings unless
// its options say otherwise.
const (
	DefaultPublishWindow = 1024
	DefaultAckTimeout    = 5 * time.Second
)

// ErrNoAck is in the chain of an error when a message was sent and no answer
// came. The message may have been stored all the same: send it again with the
// same ID, which the stream then takes for a duplicate.
var ErrNoAck = errors.New("no acknowledgement, the message may be stored")

// Message is what a Publisher sends.
type Message struct {
	Subject string
	// ID becomes the Nats-Msg-Id, by which the stream drops a repetition.
	ID     string
	Body   []byte
	Header nats.Header
}

// Result is what became of one message. Without an Err it is stored, now or
// (Duplicate) earlier, at Sequence of its stream.
type Result struct {
	Duplicate bool
	Sequence  uint64
	Err       error
}

// PublisherOptions tune a Publisher; the zero value is the default.
type PublisherOptions struct {
	// Window is how many messages may await their acknowledgement.
	Window int
	// AckTimeout is how long each may wait for it.
	AckTimeout time.Duration
}

// Publisher stores messages in streams and waits for the acknowledgements. It
// is safe for concurrent use; callers share one window. Use one per connection.
type Publisher struct {
	js    jetstream.JetStream
	slots chan struct{}
}

// NewPublisher makes a Publisher over the connection, domain and API prefix of js.
func NewPublisher(js jetstream.JetStream, o PublisherOptions) (*Publisher, error) {
	if o.Window <= 0 {
		o.Window = DefaultPublishWindow
	}
	if o.AckTimeout <= 0 {
		o.AckTimeout = DefaultAckTimeout
	}
	p := &Publisher{slots: make(chan struct{}, o.Window)}
	own, err := reopen(js,
		jetstream.WithPublishAsyncMaxPending(o.Window),
		jetstream.WithPublishAsyncTimeout(o.AckTimeout),
		jetstream.WithPublishAsyncAckHandler(func(jetstream.JetStream, *nats.Msg, *jetstream.PubAck) { p.release() }),
		jetstream.WithPublishAsyncErrHandler(func(jetstream.JetStream, *nats.Msg, error) { p.release() }))
	if err != nil {
		return nil, fmt.Errorf("open publisher: %w", err)
	}
	p.js = own
	return p, nil
}

// reopen makes a context of its own, because the limit of unacknowledged
// messages and their timeout are settings of a whole context.
func reopen(js jetstream.JetStream, opts ...jetstream.JetStreamOpt) (jetstream.JetStream, error) {
	switch in := js.Options(); {
	case in.Domain != "":
		return jetstream.NewWithDomain(js.Conn(), in.Domain, opts...)
	case in.APIPrefix != "" && in.APIPrefix != jetstream.DefaultAPIPrefix:
		return jetstream.NewWithAPIPrefix(js.Conn(), in.APIPrefix, opts...)
	default:
		return jetstream.New(js.Conn(), opts...)
	}
}

// Close fails what is still waiting and gives back the reply subscription; the
// Publisher is not to be used afterwards. The connection stays open.
func (p *Publisher) Close() { p.js.CleanupPublisher() }

// Publish stores one message and waits until it is acknowledged. A duplicate
// is no error: the message is stored.
func (p *Publisher) Publish(ctx context.Context, m Message) error {
	return p.PublishAll(ctx, []Message{m})[0].Err
}

// PublishAll stores the messages, many in flight at a time, and returns when
// each is settled or ctx ends; results are parallel to messages. They are sent
// in order, but one that fails does not hold up those behind it. At the end of
// ctx a message that was not sent yet has the context's error; one that was
// sent has ErrNoAck as well.
func (p *Publisher) PublishAll(ctx context.Context, messages []Message) []Result {
	results := make([]Result, len(messages))
	futures := make([]jetstream.PubAckFuture, len(messages))
	for i, m := range messages {
		if futures[i], results[i].Err = p.send(ctx, m); results[i].Err != nil {
			results[i].Err = fmt.Errorf("publish to %s: not sent: %w", m.Subject, results[i].Err)
		}
	}
	for i, future := range futures {
		if future != nil {
			results[i] = await(ctx, future)
		}
	}
	return results
}

// send waits for a slot of the window. The slot is given back when the message
// is settled, whether or not anyone still waits for that.
func (p *Publisher) send(ctx context.Context, m Message) (jetstream.PubAckFuture, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	future, err := p.js.PublishMsgAsync(m.msg())
	if err != nil {
		p.release()
		return nil, err
	}
	return future, nil
}

func (p *Publisher) release() {
	select {
	case <-p.slots:
	default: // a retry that fails is settled twice
	}
}

func await(ctx context.Context, future jetstream.PubAckFuture) Result {
	var err error
	select {
	case ack := <-future.Ok():
		return Result{Duplicate: ack.Duplicate, Sequence: ack.Sequence}
	case err = <-future.Err():
		err = unanswered(err)
	case <-ctx.Done():
		err = fmt.Errorf("%w: %w", ErrNoAck, context.Cause(ctx))
	}
	return Result{Err: fmt.Errorf("publish to %s: %w", future.Msg().Subject, err)}
}

// unanswered tells an answer of the server, which is final, from silence.
func unanswered(err error) error {
	if errors.Is(err, jetstream.ErrAsyncPublishTimeout) || errors.Is(err, nats.ErrDisconnected) ||
		errors.Is(err, jetstream.ErrJetStreamPublisherClosed) {
		return fmt.Errorf("%w: %w", ErrNoAck, err)
	}
	return err
}

// msg leaves the caller's header as it is.
func (m Message) msg() *nats.Msg {
	header := maps.Clone(m.Header)
	if m.ID != "" {
		if header == nil {
			header = make(nats.Header, 1)
		}
		header[jetstream.MsgIDHeader] = []string{m.ID}
	}
	return &nats.Msg{Subject: m.Subject, Data: m.Body, Header: header}
}
