package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

// lettersCmd is what an operator does with messages that were given up.
//
//	consumers, ledger, relay ─► headroom.deadletters.<room>.<kind>
//	                                │
//	      list, show ◄──────────────┤
//	      replay ◄──────────────────┤  body ─► its subject, ack awaited ─► letter removed
//	      drop ◄────────────────────┘  overwritten and removed
type lettersCmd struct {
	List   deadlettersListCmd   `cmd:"" help:"List messages that were given up, newest first."`
	Show   deadlettersShowCmd   `cmd:"" help:"Show one: why it was given up, its headers and its body."`
	Replay deadlettersReplayCmd `cmd:"" help:"Publish their bodies again, where they were published first."`
	Drop   deadlettersDropCmd   `cmd:"" help:"Remove them for good."`
}

// letterBox is the stream of dead letters.
type letterBox struct {
	*program
	js       jetstream.JetStream
	topology schemas.Topology
	stream   jetstream.Stream
}

// withLetters runs work with the dead letters, and closes the connection.
func (p *program) withLetters(ctx context.Context, work func(*letterBox) error) error {
	config, _, err := p.settings()
	if err != nil {
		return err
	}
	nc, js, err := dialNATS(config, natsDialTimeout)
	if err != nil {
		return err
	}
	defer nc.Close()
	box := &letterBox{program: p, js: js, topology: config.topology()}
	name := box.topology.Stream(schemas.StreamDeadLetters)
	box.stream, err = js.Stream(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("open the dead letters: there is no stream %s: run \"headroom migrate\" first, or look at HEADROOM_SUBJECT_PREFIX", name)
	case err != nil:
		return fmt.Errorf("open the dead letters in %s: %w", name, err)
	}
	return work(box)
}

// get is a letter with its body.
func (b *letterBox) get(ctx context.Context, sequence uint64) (storedLetter, error) {
	raw, err := b.stream.GetMsg(ctx, sequence)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return storedLetter{}, fmt.Errorf("%w %d", errNoLetter, sequence)
	case err != nil:
		return storedLetter{}, fmt.Errorf("read dead letter %d: %w", sequence, err)
	}
	return storedLetter{
		deadLetter: readLetter(raw.Subject, raw.Sequence, raw.Header),
		header:     raw.Header, body: raw.Data, stored: raw.Time,
	}, nil
}

// errNoLetter means that there is no letter of a sequence, or none any more.
var errNoLetter = errors.New("there is no dead letter")

// remove takes a letter away with the given verb. One that somebody else took away
// in the meantime is gone as well.
func (b *letterBox) remove(ctx context.Context, sequence uint64, verb func(context.Context, uint64) error) error {
	err := verb(ctx, sequence)
	if err == nil {
		return nil
	}
	if _, gone := b.get(ctx, sequence); errors.Is(gone, errNoLetter) {
		return nil
	}
	return err
}
