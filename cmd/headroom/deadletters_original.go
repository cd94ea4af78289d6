package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

// origin is the stream that a subject belongs to, empty for none. It is asked for before
// anything is published: whoever may write letters must not be able to make an
// operator publish anywhere else, as to the subjects by which streams are deleted.
func (b *letterBox) origin(subject string) string {
	letters := b.topology.Stream(schemas.StreamDeadLetters)
	for _, stream := range b.topology.Streams() {
		if stream.Name == letters {
			continue
		}
		for _, pattern := range stream.Subjects {
			if captures(pattern, subject) {
				return stream.Name
			}
		}
	}
	return ""
}

// captures reports whether a pattern with "*" for whole tokens takes a subject that
// can be published to.
func captures(pattern, subject string) bool {
	want, have := strings.Split(pattern, "."), strings.Split(subject, ".")
	if len(want) != len(have) || strings.ContainsAny(subject, " \t\r\n*>") {
		return false
	}
	for i, token := range have {
		if token == "" || want[i] != "*" && want[i] != token {
			return false
		}
	}
	return true
}

// errGone means that the message of a letter is no longer in its stream.
var errGone = errors.New("the original is no longer there")

// original reads the message of a letter from its stream. It is the same only if its
// subject, its time and its beginning are: a stream that was made anew counts from 1 again.
func (b *letterBox) original(ctx context.Context, l storedLetter, name string) (*jetstream.RawStreamMsg, error) {
	if l.original() == 0 {
		return nil, errGone // a letter that does not say which
	}
	stream, err := b.js.Stream(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	raw, err := stream.GetMsg(ctx, l.original())
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, errGone
	case err != nil:
		return nil, fmt.Errorf("read %d of %s: %w", l.original(), name, err)
	case raw.Subject != l.Subject || l.FirstAt == nil || !raw.Time.Equal(*l.FirstAt) || !bytes.HasPrefix(raw.Data, l.body):
		return nil, fmt.Errorf("%w: %d of %s is another message now", errGone, l.original(), name)
	}
	return raw, nil
}

// whereabouts tells a person where the message of a letter is.
func (b *letterBox) whereabouts(ctx context.Context, l storedLetter) string {
	if l.Kind == kindOutbox {
		return fmt.Sprintf("a row of the table outbox, position %d", l.original())
	}
	name := b.origin(l.Subject)
	if name == "" {
		return "unknown: no stream of this installation takes its subject"
	}
	switch _, err := b.original(ctx, l, name); {
	case err == nil:
		return fmt.Sprintf("%s %d", name, l.original())
	case errors.Is(err, errGone):
		return fmt.Sprintf("no longer in %s, where it was %d", name, l.original())
	default:
		return fmt.Sprintf("%s %d, which could not be looked at: %v", name, l.original(), err)
	}
}
