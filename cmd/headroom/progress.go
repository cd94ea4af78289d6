package main

import (
	"fmt"
	"io"
)

// progress is how long work tells a person how far it is: a line on stderr that
// is written over. It is nil where stderr is no terminal.
func (p *program) progress(of string) func(done, total int) {
	if !isTerminal(p.stderr) {
		return nil
	}
	return progressLine(p.stderr, of)
}

// progressLine writes about a hundred times in all, and ends the line at the last.
func progressLine(w io.Writer, of string) func(done, total int) {
	return func(done, total int) {
		if done < total && done%max(total/100, 1) != 0 {
			return
		}
		fmt.Fprintf(w, "\r%d of %d %s", done, total, of)
		if done >= total {
			fmt.Fprintln(w)
		}
	}
}
