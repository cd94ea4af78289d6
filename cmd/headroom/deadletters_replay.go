package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/headroomhq/headroom/schemas"
)

// replayBatch is how many letters, of up to a megabyte each, are under way at once.
const replayBatch = 32

// deadlettersReplayCmd publishes letters' bodies again.
type deadlettersReplayCmd struct{ letterSelection }

// Help says what a replay does, and when not to.
func (deadlettersReplayCmd) Help() string {
	return "Publishes each body again on the subject that it was published on first, waits until the stream has it, and removes the letter only then. " +
		"Of a letter that holds only the beginning the message itself is published, if its stream still has it. What fails again becomes a new letter.\n\n" +
		"The event keeps its id and source: a request that was answered before gets the same answer, and is counted once. " +
		"So a replay that was interrupted is simply run again.\n\n" +
		"A request is decided now. If nobody waits for it any more, an allow takes a slot until its lease ends: drop such letters instead.\n\n" +
		"Letters of the kind outbox were never events and cannot be replayed; what is printed for each says what to do."
}

// Run replays them, and goes on behind one that fails.
func (c *deadlettersReplayCmd) Run(ctx context.Context, p *program) error {
	return c.withChosen(ctx, p, func(b *letterBox, chosen []uint64) error {
		if c.many() && !c.Yes {
			if err := p.confirm(ctx, fmt.Sprintf("Publish the messages of %s again?", counted(len(chosen), "dead letter"))); err != nil {
				return err
			}
		}
		publisher, err := schemas.NewPublisher(b.js, schemas.PublisherOptions{})
		if err != nil {
			return err
		}
		defer publisher.Close()
		r := replayer{letterBox: b, publisher: publisher, quiet: c.many()}
		if c.many() {
			r.told = p.progress("dead letters")
		}
		return r.run(ctx, chosen)
	})
}

// replayer publishes letters again.
type replayer struct {
	*letterBox
	publisher *schemas.Publisher
	// quiet prints no line for each letter, only how many there were.
	quiet  bool
	told   func(done, total int)
	done   int
	faults []error
}

// resent is a letter on its way back.
type resent struct {
	letter  storedLetter
	stream  string
	message schemas.Message
}

func (r *replayer) run(ctx context.Context, chosen []uint64) error {
	for begun := 0; begun < len(chosen) && ctx.Err() == nil; {
		next := chosen[begun:min(begun+replayBatch, len(chosen))]
		r.batch(ctx, next)
		begun += len(next)
		if r.told != nil {
			r.told(begun, len(chosen))
		}
	}
	if ctx.Err() != nil {
		r.faults = append(r.faults, errors.New("interrupted: run the same command again for those that are left"))
	}
	if r.quiet {
		fmt.Fprintf(r.stdout, "%d of %s published again\n", r.done, counted(len(chosen), "dead letter"))
	}
	return errors.Join(r.faults...)
}

// batch publishes letters and removes those that their streams have.
func (r *replayer) batch(ctx context.Context, sequences []uint64) {
	var under []resent
	var messages []schemas.Message
	for _, sequence := range sequences {
		l, err := r.get(ctx, sequence)
		if err == nil {
			var one resent
			if one, err = r.compose(ctx, l); err == nil {
				under, messages = append(under, one), append(messages, one.message)
				continue
			}
		}
		r.failed(sequence, err)
	}
	for i, result := range r.publisher.PublishAll(ctx, messages) {
		if err := r.settle(ctx, under[i], result); err != nil {
			r.failed(under[i].letter.Sequence, err)
		}
	}
}

// settle removes a letter whose message is certainly stored.
func (r *replayer) settle(ctx context.Context, one resent, result schemas.Result) error {
	if result.Err != nil {
		return unpublished(result.Err)
	}
	if result.Duplicate {
		if err := r.sameStored(ctx, one, result.Sequence); err != nil {
			return err
		}
	}
	if err := r.remove(ctx, one.letter.Sequence, r.stream.DeleteMsg); err != nil {
		return fmt.Errorf("it is published again, as %d of %s, but the letter could not be removed: %w; run the command again", result.Sequence, one.stream, err)
	}
	r.done++
	if !r.quiet {
		fmt.Fprintf(r.stdout, "%d  published again as %d of %s\n", one.letter.Sequence, result.Sequence, one.stream)
	}
	return nil
}

func (r *replayer) failed(sequence uint64, err error) {
	switch {
	case errors.Is(err, context.Canceled):
		return // run tells of it once
	case r.quiet && errors.Is(err, errNoLetter):
		return // somebody else took care of it
	}
	r.faults = append(r.faults, fmt.Errorf("replay %d: %w", sequence, err))
}
