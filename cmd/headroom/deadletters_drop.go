package main

import (
	"context"
	"errors"
	"fmt"
)

// deadlettersDropCmd removes letters.
type deadlettersDropCmd struct{ letterSelection }

// Help says what is left of them.
func (deadlettersDropCmd) Help() string {
	return "The letters are overwritten and removed: nothing brings them back. That takes the server some milliseconds for each. The messages that they are of stay in their streams, up to 7 days for executions. " +
		"On a terminal you are asked first, unless --yes is given. Each line printed is a letter that is gone."
}

// Run removes them, and goes on behind one that fails.
func (c *deadlettersDropCmd) Run(ctx context.Context, p *program) error {
	return c.withChosen(ctx, p, func(b *letterBox, chosen []uint64) error {
		if !c.Yes && p.attended() {
			if err := p.confirm(ctx, fmt.Sprintf("Remove %s for good?", counted(len(chosen), "dead letter"))); err != nil {
				return err
			}
		}
		return b.drop(ctx, chosen, c.many())
	})
}

// drop removes letters. That one is gone already is a fault only where a person named it.
func (b *letterBox) drop(ctx context.Context, chosen []uint64, many bool) error {
	var faults []error
	dropped := 0
	for _, sequence := range chosen {
		l, err := b.get(ctx, sequence)
		if err == nil {
			err = b.remove(ctx, sequence, b.stream.SecureDeleteMsg)
		}
		switch {
		case ctx.Err() != nil:
			return errors.Join(append(faults, fmt.Errorf("interrupted: %d of %s are dropped", dropped, counted(len(chosen), "dead letter")))...)
		case many && errors.Is(err, errNoLetter):
		case err != nil:
			faults = append(faults, fmt.Errorf("drop %d: %w", sequence, err))
		default:
			dropped++
			fmt.Fprintf(b.stdout, "%d  dropped  %s  %s\n", sequence, dash(printable(l.Subject)), dash(printable(l.Reason)))
		}
	}
	return errors.Join(faults...)
}
