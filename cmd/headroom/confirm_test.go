package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestOnlyYesIsAYes(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]error{
		"y\n": nil, "yes\n": nil, " YES \r\n": nil, "y": nil,
		"": errUnconfirmed, "\n": errUnconfirmed, "n\n": errUnconfirmed, "yep\n": errUnconfirmed, "\ny\n": errUnconfirmed,
	} {
		var asked strings.Builder
		if err := confirmed(t.Context(), strings.NewReader(answer), &asked, "Remove 2 dead letters for good?"); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", answer, err, want)
		}
		if asked.String() != "Remove 2 dead letters for good? [y/N] " {
			t.Errorf("asked is %q", asked.String())
		}
	}
}

func TestAnInterruptedQuestionIsANo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	silent, end := io.Pipe()
	defer end.Close()
	cancel()
	if err := confirmed(ctx, silent, io.Discard, "Sure?"); !errors.Is(err, errUnconfirmed) {
		t.Errorf("error is %v, want %v", err, errUnconfirmed)
	}
}
