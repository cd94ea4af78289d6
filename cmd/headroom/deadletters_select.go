package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// letterSelection is which letters replay and drop are about: those that are named, or all
// that match.
type letterSelection struct {
	Sequences []uint64 `arg:"" optional:"" name:"SEQ" help:"Their numbers, the first column of the list."`
	All       bool     `help:"All letters there are, or those of --room, --kind and --older-than."`
	OlderThan string   `placeholder:"AGE" help:"Only those given up longer ago than this, such as 36h or 14d; with or without --all."`
	letterFilter
	Yes bool `short:"y" help:"Do not ask. All letters, or those that match, are never taken without it, or a yes on a terminal."`
}

// many reports whether letters are meant that nobody named.
func (s *letterSelection) many() bool { return s.All || s.OlderThan != "" }

// check refuses a selection that says too little or contradicts itself.
func (s *letterSelection) check(p *program) (olderThan time.Duration, err error) {
	switch {
	case len(s.Sequences) == 0 && !s.many():
		return 0, &usageError{Err: errors.New("say which: their numbers, or --all with or without --room, --kind and --older-than")}
	case len(s.Sequences) > 0 && (s.many() || s.letterFilter != letterFilter{}):
		return 0, &usageError{Err: errors.New("give either numbers, or --all with what it is narrowed by")}
	case s.many() && !s.Yes && !p.attended():
		return 0, &usageError{Err: errors.New("there is no terminal to ask on: add --yes to take all that match")}
	}
	if err := s.letterFilter.check(); err != nil {
		return 0, err
	}
	if s.OlderThan == "" {
		return 0, nil
	}
	olderThan, err = parseDuration(s.OlderThan)
	if err != nil || olderThan < 0 {
		return 0, &usageError{Err: fmt.Errorf("--older-than is %q, must be a duration like 90m, 36h or 14d", s.OlderThan)}
	}
	return olderThan, nil
}

// choose is the numbers of the letters that are meant, oldest first. Letters that are
// written from now on are not among them, so that a replay has an end.
func (s *letterSelection) choose(ctx context.Context, b *letterBox, olderThan time.Duration) ([]uint64, error) {
	if !s.many() {
		chosen := slices.Clone(s.Sequences)
		slices.Sort(chosen)
		return slices.Compact(chosen), nil
	}
	before := now().Add(-olderThan)
	state := b.stream.CachedInfo().State
	var chosen []uint64
	err := b.scan(ctx, s.letterFilter, span{from: state.FirstSeq, to: state.LastSeq}, func(l deadLetter, stored time.Time) {
		if s.OlderThan == "" || stored.Before(before) {
			chosen = append(chosen, l.Sequence)
		}
	})
	return chosen, err
}

// withChosen hands over the letters that are selected, if there are any.
func (s *letterSelection) withChosen(ctx context.Context, p *program, do func(b *letterBox, chosen []uint64) error) error {
	olderThan, err := s.check(p)
	if err != nil {
		return err
	}
	return p.withLetters(ctx, func(b *letterBox) error {
		chosen, err := s.choose(ctx, b, olderThan)
		if err != nil {
			return err
		}
		if len(chosen) == 0 {
			p.note("no dead letters")
			return nil
		}
		return do(b, chosen)
	})
}
