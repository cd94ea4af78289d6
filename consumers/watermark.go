package consumers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
)

// Watermark tells when the ledger has folded what was published about a workspace. It
// implements enforcement.Watermark.
//
//	last decision, last completion ◄── streams
//	            └─► wait until the ledger's positions are there
type Watermark struct {
	js       jetstream.JetStream
	topology schemas.Topology
	store    *ledger.Store
}

// NewWatermark is one over the streams that the ledger in store is kept from.
func NewWatermark(js jetstream.JetStream, topology schemas.Topology, store *ledger.Store) *Watermark {
	return &Watermark{js: js, topology: topology, store: store}
}

// settlePoll is how often the ledger's position is looked at. A fold takes a few
// milliseconds.
const settlePoll = 10 * time.Millisecond

// Settled waits until the ledger has folded every decision and every completion of a
// workspace that is in the streams when it is called, or until ctx ends.
func (w *Watermark) Settled(ctx context.Context, workspace string) (enforcement.Settled, error) {
	decisions, err := w.last(ctx, schemas.StreamDecisions, w.topology.Decision(workspace))
	if err != nil {
		return enforcement.Settled{}, err
	}
	completions, err := w.last(ctx, schemas.StreamExecutions, w.topology.Completed(workspace))
	if err != nil {
		return enforcement.Settled{}, err
	}
	found := enforcement.Settled{Workspace: decisions.sequence > 0, Anybody: decisions.ever}
	if !found.Anybody {
		if found.Anybody, err = w.store.Began(ctx, decisions.stream); err != nil {
			return enforcement.Settled{}, err
		}
	}
	for _, m := range []mark{decisions, completions} {
		if err := w.reach(ctx, m); err != nil {
			return enforcement.Settled{}, err
		}
	}
	return found, nil
}

// mark is a place in a stream.
type mark struct {
	stream, source string
	sequence       uint64
	// ever: there is or was a message in the stream, on whatever subject.
	ever bool
}

// last finds the last message on a subject; without one the sequence is 0.
func (w *Watermark) last(ctx context.Context, kind schemas.StreamKind, subject string) (mark, error) {
	m := mark{stream: w.topology.Stream(kind)}
	stream, err := w.js.Stream(ctx, m.stream)
	if err != nil {
		return m, fmt.Errorf("open stream %s: %w", m.stream, err)
	}
	info := stream.CachedInfo()
	m.source, m.ever = ledger.Source(m.stream, info.Created), info.State.LastSeq > 0
	if !m.ever {
		return m, nil
	}
	// Any replica answers a direct get, one that lags too: this handle asks the leader.
	info.Config.AllowDirect = false
	message, err := stream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return m, nil
	}
	if err != nil {
		return m, fmt.Errorf("read the last message on %s: %w", subject, err)
	}
	m.sequence = message.Sequence
	return m, nil
}

// reach waits until the ledger is there.
func (w *Watermark) reach(ctx context.Context, m mark) error {
	again := time.NewTicker(settlePoll)
	defer again.Stop()
	for m.sequence > 0 {
		reached, err := w.store.Reached(ctx, m.source)
		if err != nil {
			return err
		}
		if reached >= m.sequence {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("the ledger has reached %d of %s, not yet %d: %w", reached, m.stream, m.sequence, ctx.Err())
		}
	}
	return nil
}
