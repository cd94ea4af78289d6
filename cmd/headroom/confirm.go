package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// errUnconfirmed means that a person was asked and did not say yes.
var errUnconfirmed = errors.New("not confirmed: nothing was done")

// attended reports whether a person can be asked.
func (p *program) attended() bool { return isTerminal(p.stderr) && isTerminal(os.Stdin) }

// confirm asks a person on the terminal; only yes goes on.
func (p *program) confirm(ctx context.Context, question string) error {
	return confirmed(ctx, os.Stdin, p.stderr, question)
}

// confirmed asks on w and reads the answer from r. The end of ctx is a no: a read of a
// terminal cannot be ended, and its goroutine is left to the end of the process.
func confirmed(ctx context.Context, r io.Reader, w io.Writer, question string) error {
	fmt.Fprintf(w, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(r).ReadString('\n') // no line is no yes
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case line := <-answer:
		if line == "y" || line == "yes" {
			return nil
		}
	case <-ctx.Done():
	}
	return errUnconfirmed
}
