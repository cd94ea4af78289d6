package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/schemas"
)

// deadLetter is a line of the list. What its writer left out is empty, 0 or null.
type deadLetter struct {
	Sequence uint64 `json:"sequence"`
	Room     string `json:"room"`
	Kind     string `json:"kind"`
	Reason   string `json:"reason"`
	// Subject is where the message was published.
	Subject    string `json:"subject"`
	Deliveries uint64 `json:"deliveries"`
	// FirstAt is when the message was stored, LastAt when it was given up.
	FirstAt *time.Time `json:"first_at"`
	LastAt  *time.Time `json:"last_at"`
}

// storedLetter is a letter as the stream has it.
type storedLetter struct {
	deadLetter
	header nats.Header
	body   []byte
	stored time.Time
}

// The headers of a dead letter, as the contract names them.
const (
	letterReason     = "Headroom-Reason"
	letterSubject    = "Headroom-Subject"
	letterSequence   = "Headroom-Sequence"
	letterDeliveries = "Headroom-Deliveries"
	letterFirst      = "Headroom-First"
	letterLast       = "Headroom-Last"
	letterTruncated  = "Headroom-Truncated"
)

// kindOutbox is the kind of letters that a relay writes: not of a message, but of a
// row of the table outbox.
const kindOutbox = "outbox"

func readLetter(subject string, sequence uint64, header nats.Header) deadLetter {
	l := deadLetter{
		Sequence: sequence, Reason: schemas.HeaderValue(header, letterReason), Subject: schemas.HeaderValue(header, letterSubject),
		Deliveries: headerNumber(header, letterDeliveries),
		FirstAt:    headerInstant(header, letterFirst), LastAt: headerInstant(header, letterLast),
	}
	if tokens := strings.Split(subject, "."); len(tokens) >= 2 {
		l.Room, l.Kind = tokens[len(tokens)-2], tokens[len(tokens)-1]
	}
	return l
}

// original is the sequence that the message has in its own stream.
func (l storedLetter) original() uint64 { return headerNumber(l.header, letterSequence) }

// cutFrom is how many bytes the message has of which the letter holds only the
// beginning, 0 where it holds all.
func (l storedLetter) cutFrom() uint64 { return headerNumber(l.header, letterTruncated) }

// ownHeader is what the message was published with, as far as the letter has it.
func ownHeader(header nats.Header) nats.Header {
	own := make(nats.Header)
	for name, values := range header {
		if lower := strings.ToLower(name); !strings.HasPrefix(lower, "nats-") && !strings.HasPrefix(lower, "headroom-") {
			own[name] = values
		}
	}
	return own
}

func headerNumber(header nats.Header, name string) uint64 {
	n, err := strconv.ParseUint(schemas.HeaderValue(header, name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func headerInstant(header nats.Header, name string) *time.Time {
	at, err := time.Parse(time.RFC3339Nano, schemas.HeaderValue(header, name))
	if err != nil {
		return nil
	}
	at = at.UTC()
	return &at
}

// instantOf is how a table shows a time that may be missing.
func instantOf(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return instant(*at)
}
