package main

import (
	"context"
	"fmt"
	"strconv"
)

// deadlettersListCmd lists letters.
type deadlettersListCmd struct {
	letterFilter
	Limit int `default:"100" placeholder:"N" help:"How many at most; ${default} unless given."`
	output
}

// Help says what is on the list.
func (deadlettersListCmd) Help() string {
	return "Messages that can never be handled, or failed too often. Nothing waits for them: what came behind each was handled. " +
		"docs/deadletters.md says what each reason means and what to do. Letters are kept for 30 days."
}

// Run prints the letters.
func (c *deadlettersListCmd) Run(ctx context.Context, p *program) error {
	if c.Limit < 1 {
		return &usageError{Err: fmt.Errorf("--limit %d: must be at least 1", c.Limit)}
	}
	if err := c.check(); err != nil {
		return err
	}
	return p.withLetters(ctx, func(b *letterBox) error {
		letters, err := b.newest(ctx, c.letterFilter, c.Limit)
		if err != nil {
			return err
		}
		if c.json() {
			return writeIndented(p.stdout, list(letters))
		}
		t := newTable("SEQ", "ROOM", "KIND", "GIVEN UP AT", "DELIVERIES", "SUBJECT", "REASON")
		for _, l := range letters {
			t.add(strconv.FormatUint(l.Sequence, 10), printable(l.Room), printable(l.Kind), instantOf(l.LastAt),
				strconv.FormatUint(l.Deliveries, 10), dash(printable(l.Subject)), dash(printable(l.Reason)))
		}
		if err := t.write(p.stdout, "no dead letters"); err != nil {
			return err
		}
		if len(letters) == c.Limit {
			p.note("There may be more: add another --limit.")
		}
		return nil
	})
}
