package consumers

import (
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// message is a delivered message as handlers see it: they cannot settle it.
type message struct {
	subject string
	body    []byte
	header  nats.Header
	// sequence is the message's in its stream, and stored when it came there.
	sequence uint64
	stream   string
	stored   time.Time
	// delivered counts the deliveries so far, this one included.
	delivered uint64
	// raw is settle.go's.
	raw jetstream.Msg
}

func newMessage(raw jetstream.Msg) (*message, error) {
	meta, err := raw.Metadata()
	if err != nil {
		return nil, err
	}
	return &message{
		subject: raw.Subject(), body: raw.Data(), header: raw.Headers(),
		sequence: meta.Sequence.Stream, stream: meta.Stream, stored: meta.Timestamp,
		delivered: meta.NumDelivered, raw: raw,
	}, nil
}

// collect is the first message and those that wait behind it, up to most: a
// batch forms by itself and is never waited for.
func collect(first jetstream.Msg, queue <-chan jetstream.Msg, most int) []jetstream.Msg {
	batch := append(make([]jetstream.Msg, 0, min(most, len(queue)+1)), first)
	for len(batch) < most {
		select {
		case next, open := <-queue:
			if !open {
				return batch
			}
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}
