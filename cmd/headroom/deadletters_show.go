package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
)

// deadlettersShowCmd shows one letter.
type deadlettersShowCmd struct {
	Sequence uint64 `arg:"" name:"SEQ" help:"Its number, the first column of the list."`
	output
}

// Help says how the body is shown.
func (deadlettersShowCmd) Help() string {
	return "A body that is JSON is indented; any other is shown as text, with escapes for what a terminal would act on. " +
		"-o json has the body as it is, under \"body\", or under \"body_base64\" where it is no UTF-8."
}

// letterView is a letter for -o json.
type letterView struct {
	deadLetter
	StoredAt time.Time   `json:"stored_at"`
	Headers  nats.Header `json:"headers"`
	Original string      `json:"original"`
	// CutFrom is the length of the message of which the body is only the beginning.
	CutFrom uint64  `json:"cut_from,omitempty"`
	Body    *string `json:"body,omitempty"`
	Bytes   []byte  `json:"body_base64,omitempty"`
}

// Run prints it.
func (c *deadlettersShowCmd) Run(ctx context.Context, p *program) error {
	return p.withLetters(ctx, func(b *letterBox) error {
		l, err := b.get(ctx, c.Sequence)
		if err != nil {
			return err
		}
		where := b.whereabouts(ctx, l)
		if c.json() {
			view := letterView{deadLetter: l.deadLetter, StoredAt: l.stored, Headers: l.header, Original: where, CutFrom: l.cutFrom()}
			if text := string(l.body); utf8.Valid(l.body) {
				view.Body = &text
			} else {
				view.Bytes = l.body
			}
			return writeIndented(p.stdout, view)
		}
		return l.print(p, where)
	})
}

func (l storedLetter) print(p *program, where string) error {
	size := strconv.Itoa(len(l.body)) + " bytes"
	if full := l.cutFrom(); full > 0 {
		size = fmt.Sprintf("the first %d of %d bytes", len(l.body), full)
	}
	pairs := [][2]string{
		{"dead letter", strconv.FormatUint(l.Sequence, 10)},
		{"room and kind", printable(l.Room + " " + l.Kind)},
		{"reason", dash(printable(l.Reason))},
		{"subject", dash(printable(l.Subject))},
		{"original", printable(where)},
		{"deliveries", strconv.FormatUint(l.Deliveries, 10)},
		{"stored at", instantOf(l.FirstAt)},
		{"given up at", instantOf(l.LastAt)},
		{"body", size},
	}
	own := ownHeader(l.header)
	for _, name := range sortedKeys(own) {
		for _, value := range own[name] {
			pairs = append(pairs, [2]string{"header " + printable(name), printable(value)})
		}
	}
	if err := facts(p.stdout, pairs...); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.stdout, "\n%s\n", bodyText(l.body))
	return err
}

// bodyText is a body as a person may read it.
func bodyText(body []byte) string {
	var indented bytes.Buffer
	if json.Indent(&indented, bytes.TrimSpace(body), "", "  ") == nil {
		body = indented.Bytes()
	}
	return printableLines(string(body))
}
