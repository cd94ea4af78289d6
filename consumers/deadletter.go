package consumers

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/schemas"
)

// The headers of a dead letter, as the contract names them.
const (
	headerReason     = "Headroom-Reason"
	headerSubject    = "Headroom-Subject"
	headerSequence   = "Headroom-Sequence"
	headerDeliveries = "Headroom-Deliveries"
	headerFirst      = "Headroom-First"
	headerLast       = "Headroom-Last"
	headerTruncated  = "Headroom-Truncated"
)

const (
	longestReason = 1024
	// mostHeader is how many bytes of the message's own headers are kept: all or none.
	mostHeader = 4096
	// envelope is what the protocol and a stream put around a message at most.
	envelope = 1024
)

// letter is a message that is given up, and why.
type letter struct {
	message *message
	reason  string
}

// deadLetters writes what could not be handled to its own stream, as it came.
type deadLetters struct {
	publisher publisher
	subject   string
	maxBytes  int // the largest message that the server takes
	now       func() time.Time
}

// publisher stores messages in streams; schemas.Publisher is one.
type publisher interface {
	PublishAll(ctx context.Context, messages []schemas.Message) []schemas.Result
}

// write stores the letters and returns an error or nil for each. One written
// again, because its message's end was not heard, is taken for a duplicate.
func (d *deadLetters) write(ctx context.Context, letters []letter) []error {
	messages := make([]schemas.Message, len(letters))
	for i, l := range letters {
		messages[i] = d.compose(l)
	}
	errs := make([]error, len(letters))
	for i, result := range d.publisher.PublishAll(ctx, messages) {
		errs[i] = result.Err
	}
	return errs
}

func (d *deadLetters) compose(l letter) schemas.Message {
	m := l.message
	header := ownHeader(m.header)
	header.Set(headerReason, headerText(l.reason))
	header.Set(headerSubject, m.subject)
	header.Set(headerSequence, strconv.FormatUint(m.sequence, 10))
	header.Set(headerDeliveries, strconv.FormatUint(m.delivered, 10))
	header.Set(headerFirst, m.stored.UTC().Format(time.RFC3339Nano))
	header.Set(headerLast, d.now().UTC().Format(time.RFC3339Nano))
	body := m.body
	if room := d.maxBytes - headerSize(header) - len(d.subject) - envelope; len(body) > room {
		header.Set(headerTruncated, strconv.Itoa(len(body)))
		body = body[:max(room, 0)]
	}
	id := m.stream + ":" + strconv.FormatUint(m.sequence, 10) + ":" + strconv.FormatInt(m.stored.UnixNano(), 10)
	return schemas.Message{Subject: d.subject, ID: id, Body: body, Header: header}
}

// ownHeader is a copy of a message's headers without those that instruct the
// server or look like a dead letter's own, or an empty one if they are very long.
func ownHeader(header nats.Header) nats.Header {
	own := maps.Clone(header)
	maps.DeleteFunc(own, func(name string, _ []string) bool {
		name = strings.ToLower(name)
		return strings.HasPrefix(name, "nats-") || strings.HasPrefix(name, "headroom-")
	})
	if own == nil || headerSize(own) > mostHeader {
		return nats.Header{}
	}
	return own
}
