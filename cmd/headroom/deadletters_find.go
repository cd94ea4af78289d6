package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// scanBatch is how many headers are asked for at once.
	scanBatch = 1000
	// narrowestWindow is how many sequences newest looks through first.
	narrowestWindow = 256
)

// letterFilter says which letters are meant; empty is any.
type letterFilter struct {
	Room string `placeholder:"ROOM" help:"Only those of this room: executions, subscriptions or decisions."`
	Kind string `placeholder:"KIND" help:"Only those of this kind: requested, progressed, completed, renewed, made or outbox."`
}

func (f letterFilter) check() error {
	if f.Room != "" {
		if err := checkID("--room", f.Room); err != nil {
			return err
		}
	}
	if f.Kind != "" {
		return checkID("--kind", f.Kind)
	}
	return nil
}

// subject selects the letters on the server; empty for all of them.
func (b *letterBox) subject(f letterFilter) string {
	if f == (letterFilter{}) {
		return ""
	}
	return b.topology.DeadLetter(cmp.Or(f.Room, "*"), cmp.Or(f.Kind, "*"))
}

// span is a part of the stream: sequences from and to are in it. Beyond is how
// many letters that match are known to lie behind it.
type span struct {
	from, to uint64
	beyond   int
}

// newest finds up to limit letters, newest first. It reads backwards in windows that
// grow, headers only, so that the newest of many cost no more than those of few.
func (b *letterBox) newest(ctx context.Context, f letterFilter, limit int) ([]deadLetter, error) {
	state := b.stream.CachedInfo().State
	var found []deadLetter
	seen := 0
	width := uint64(max(limit, narrowestWindow))
	for to := state.LastSeq; state.Msgs > 0 && len(found) < limit && to >= state.FirstSeq; width *= 4 {
		from := state.FirstSeq
		if to-from >= width {
			from = to - width + 1
		}
		var page []deadLetter
		err := b.scan(ctx, f, span{from: from, to: to, beyond: seen}, func(l deadLetter, _ time.Time) {
			page = append(page, l)
			seen++
			if len(page) >= 2*max(limit, scanBatch) {
				page = slices.Delete(page, 0, len(page)-limit)
			}
		})
		if err != nil {
			return nil, err
		}
		slices.Reverse(page)
		found = append(found, page...)
		if from == 0 {
			break
		}
		to = from - 1
	}
	return found[:min(limit, len(found))], nil
}

// scan visits the letters of a part of the stream, oldest first, with the time at
// which each was stored. It does not read their bodies.
func (b *letterBox) scan(ctx context.Context, f letterFilter, within span, visit func(deadLetter, time.Time)) error {
	consumer, err := b.stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(within.from, 1),
		FilterSubject: b.subject(f), HeadersOnly: true,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, InactiveThreshold: time.Minute,
	})
	if err != nil {
		return fmt.Errorf("read the dead letters: %w", err)
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = b.stream.DeleteConsumer(ending, consumer.CachedInfo().Name) // it ends by itself, too
	}()
	r := letterReader{consumer: consumer, within: within, visit: visit, pending: consumer.CachedInfo().NumPending}
	if err := r.read(ctx); err != nil {
		return fmt.Errorf("read the dead letters: %w", err)
	}
	return nil
}

// letterReader is a scan under way.
type letterReader struct {
	consumer      jetstream.Consumer
	within        span
	visit         func(deadLetter, time.Time)
	pending, came uint64
	passed        bool
}

func (r *letterReader) read(ctx context.Context) error {
	for r.pending > 0 && !r.passed {
		if err := r.fetch(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fetch asks for no more than what lies within the span, as far as that is known.
func (r *letterReader) fetch(ctx context.Context) error {
	want := min(max(int(r.pending)-r.within.beyond, 1), scanBatch)
	batch, err := r.consumer.FetchNoWait(want)
	if err != nil {
		return err
	}
	before := r.came
	for m := range batch.Messages() {
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if r.came++; meta.Sequence.Consumer != r.came {
			return errors.New("messages were lost on the way; try again")
		}
		r.pending = meta.NumPending
		r.passed = r.passed || meta.Sequence.Stream >= r.within.to
		if meta.Sequence.Stream <= r.within.to {
			r.visit(readLetter(m.Subject(), meta.Sequence.Stream, m.Headers()), meta.Timestamp)
		}
	}
	if err := batch.Error(); err != nil {
		return err
	}
	if r.came > before {
		return nil
	}
	return r.count(ctx)
}

// count finds out what is left when nothing came: somebody may have removed it.
func (r *letterReader) count(ctx context.Context) error {
	info, err := r.consumer.Info(ctx)
	if err != nil {
		return err
	}
	if info.NumPending >= r.pending {
		return errors.New("the stream ended early; try again")
	}
	r.pending = info.NumPending
	return nil
}
