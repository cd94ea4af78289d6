package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

// compose makes the message of a letter, or says why it cannot be published again.
//
// Its message id is made of the letter, not the one it was published with first: under
// that its stream may still take it for a repetition, acknowledge it and drop it. A
// replay that is repeated has the same id, so the stream takes the second for what
// it is; once the stream has forgotten the id (2 minutes for executions) there
// are two messages of one event, which get one answer.
//
// The trace headers go along. Headroom-Reply does not: who waited there has given
// up, and the decision is in its stream.
func (b *letterBox) compose(ctx context.Context, l storedLetter) (resent, error) {
	if l.Kind == kindOutbox {
		return resent{}, errors.New(neverAnEvent(l))
	}
	stream := b.origin(l.Subject)
	if stream == "" {
		return resent{}, fmt.Errorf("no stream of this installation takes its subject %q: publish its body where it belongs, and drop the letter", printable(l.Subject))
	}
	header, body := ownHeader(l.header), l.body
	if full := l.cutFrom(); full > 0 {
		raw, err := b.original(ctx, l, stream)
		switch {
		case errors.Is(err, errGone):
			return resent{}, fmt.Errorf("the letter holds %d of %d bytes, and %w: ask its publisher for it, and drop the letter", len(l.body), full, err)
		case err != nil:
			return resent{}, err
		}
		header, body = ownHeader(raw.Header), raw.Data
	}
	header.Set(jetstream.ExpectedStreamHeader, stream)
	return resent{letter: l, stream: stream, message: schemas.Message{
		Subject: l.Subject, ID: b.replayID(l), Body: body, Header: header,
	}}, nil
}

// replayID is the same for each replay of one letter, and no other's.
func (b *letterBox) replayID(l storedLetter) string {
	name := b.topology.Stream(schemas.StreamDeadLetters)
	return "replay:" + name + ":" + strconv.FormatUint(l.Sequence, 10) + ":" + strconv.FormatInt(l.stored.UnixNano(), 10)
}

// sameStored makes sure that what the stream has under a replay's message id is the
// letter's message. Whoever may publish can choose an id, also one that swallows a replay.
func (b *letterBox) sameStored(ctx context.Context, one resent, sequence uint64) error {
	stream, err := b.js.Stream(ctx, one.stream)
	if err != nil {
		return fmt.Errorf("look at what is stored: open %s: %w", one.stream, err)
	}
	raw, err := stream.GetMsg(ctx, sequence)
	if err != nil {
		return fmt.Errorf("look at what is stored: read %d of %s: %w", sequence, one.stream, err)
	}
	if raw.Subject != one.message.Subject || !bytes.Equal(raw.Data, one.message.Body) {
		return fmt.Errorf("another message, %d of %s, was published under this replay's id: try again when the stream has forgotten it, in an hour at most", sequence, one.stream)
	}
	return nil
}

// unpublished says what is to be done about a message that its stream did not take.
func unpublished(err error) error {
	switch {
	case errors.Is(err, schemas.ErrNoAck):
		return fmt.Errorf("%w; the letter is kept: run the command again, which stores it once", err)
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%w with a message id: it cannot be published again as it is; ask its publisher for a smaller one, and drop the letter", err)
	default:
		return fmt.Errorf("%w; the letter is kept", err)
	}
}

// neverAnEvent says what to do about a row of the outbox that no event could be made of.
func neverAnEvent(l storedLetter) string {
	tokens := strings.Split(l.Subject, ".")
	workspace := printable(tokens[len(tokens)-1])
	const never = "it is a row of the table outbox that never became an event, so there is nothing to publish again: "
	const drop = " Then drop the letter."
	switch {
	case strings.HasPrefix(l.Reason, string(schemas.ReasonTooLarge)):
		return never + "raise max_msg_size of the stream that takes " + printable(l.Subject) + ", and run `headroom invalidate " + workspace + "`." + drop
	case len(tokens) >= 2 && (tokens[len(tokens)-2] == "renewed" || tokens[len(tokens)-2] == "invalidated"):
		return never + "run `headroom invalidate " + workspace + "`, which has every instance read the workspace's plan and period again." + drop
	case len(tokens) >= 2 && tokens[len(tokens)-2] == "threshold":
		return never + "no decision depends on it; tell whoever listens for thresholds of workspace " + workspace + "." + drop
	default:
		return never + "this version knows no such kind of news. Bring all instances to the version that wrote it, and run `headroom invalidate " + workspace + "`." + drop
	}
}
