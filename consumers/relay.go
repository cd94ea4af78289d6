package consumers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// kindRelay is what a probe knows the relay by.
const kindRelay = "relay"

const (
	// relayGlance is how often the outbox is looked at when no notification comes.
	relayGlance = time.Second
	// longestRelayPause bounds how late news are published after NATS or Postgres is back.
	longestRelayPause = 5 * time.Second
	// trimEvery is how often published news are deleted.
	trimEvery = time.Hour
)

// RelayOptions makes a Relay. NATS, JetStream and Outbox are required; what is zero
// of the rest has the default of its comment.
type RelayOptions struct {
	// NATS is the connection that JetStream is on.
	NATS      *nats.Conn
	JetStream jetstream.JetStream
	Topology  schemas.Topology
	Outbox    *subscriptions.Outbox
	// Broadcast is given the event of each invalidation when the stream has it, for
	// engines that listen elsewhere; nil for none. It is called once for each, and
	// again for one whose relay was killed before it marked it. One that fails is not
	// repeated: who listens there must not rely on hearing all. It keeps no news waiting.
	Broadcast func(ctx context.Context, body []byte) error
	// Keep is how long news stay in the outbox after they were published: 7 days.
	Keep time.Duration
	// Log is where to log: nowhere.
	Log *slog.Logger
}

// Relay publishes what transactions wrote to the outbox. Any number of processes may
// run one.
//
//	outbox ─ commit, NOTIFY ─► Relay ─► headroom.subscriptions.renewed.<ws>
//	   ▲                          ├───► headroom.plans.invalidated.<ws>
//	   │                          ├───► headroom.usage.threshold.<ws>
//	   └── mark what was stored ──┼───► Broadcast  invalidations, to who does not read the stream
//	                              └───► headroom.deadletters.subscriptions.outbox  what is no event
//
// The news of one workspace are stored in the order in which they were committed, each
// after the one before it, whichever stream it goes to. None is lost: one is
// marked only after the stream has acknowledged it. None is stored twice for as
// long as its stream remembers message ids (an hour, see schemas.Topology.Streams):
// only where every relay is away longer than that, after one was killed between
// an acknowledgement and its commit, a second message with the same event
// id appears.
type Relay struct {
	options RelayOptions
	probe   probe
	stats   RelayStats
}

// NewRelay checks the options. It does not talk to any server yet.
func NewRelay(o RelayOptions) (*Relay, error) {
	if o.NATS == nil || o.JetStream == nil || o.Outbox == nil {
		return nil, errors.New("make relay: NATS, JetStream and Outbox are required")
	}
	o.Keep = positive(o.Keep, 7*24*time.Hour)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Relay{options: o, probe: unwatched{}}, nil
}

// Stats are the relay's counts.
func (r *Relay) Stats() *RelayStats { return &r.stats }

// Run publishes until ctx ends, and then returns nil as soon as what the stream has
// acknowledged is marked. While NATS or Postgres is away it tries again with
// growing pauses. The streams must exist (schemas.Topology.Ensure). An error is
// one of the beginning.
func (r *Relay) Run(ctx context.Context) error {
	p, err := schemas.NewPublisher(r.options.JetStream, schemas.PublisherOptions{})
	if err != nil {
		return fmt.Errorf("run relay: %w", err)
	}
	defer p.Close()
	w := &relayWork{Relay: r, press: r.press(p), wake: make(chan struct{}, 1)}
	if b := w.press.broadcast; b != nil {
		var sending sync.WaitGroup
		sending.Go(func() { b.run(ctx) })
		defer func() {
			close(b.queue)
			sending.Wait()
		}()
	}
	var parts errgroup.Group
	for _, part := range []func(context.Context){w.relay, w.listen, w.trim} {
		parts.Go(func() error {
			part(ctx)
			return nil
		})
	}
	return parts.Wait()
}

func (r *Relay) press(p publisher) *press {
	o := r.options
	return &press{
		publisher: p, editions: editionsOf(o.Topology), broadcast: r.newBroadcast(), probe: r.probe, log: o.Log,
		letters: &deadLetters{
			publisher: p, subject: o.Topology.DeadLetter("subscriptions", "outbox"),
			maxBytes: int(o.NATS.MaxPayload()), now: time.Now,
		},
	}
}

// relayWork is a running Relay.
type relayWork struct {
	*Relay
	press *press
	wake  chan struct{}
}

// relay makes pass after pass until ctx ends.
func (w *relayWork) relay(ctx context.Context) {
	var s sweep
	for failures := uint64(0); ctx.Err() == nil; {
		before := s
		stuck := s.pass(ctx, w.options.Outbox, w.press)
		w.stats.published.Add(int64(s.published - before.published))
		w.stats.failed.Add(int64(s.failed - before.failed))
		w.probe.at(kindRelay, "marked")
		if !stuck && s.goesOn() || ctx.Err() != nil {
			continue
		}
		pause := relayGlance
		if s.fault == nil {
			failures = 0
			w.report(ctx, s)
		} else {
			failures++
			pause = min(growing(failures), longestRelayPause)
			w.options.Log.WarnContext(ctx, "news wait in the outbox", "error", s.fault, "failed", s.failed, "pause", pause)
		}
		w.rest(ctx, pause, !stuck)
		s = sweep{after: s.after}
	}
}

// rest waits; a notification ends it early, unless nothing can be published.
func (w *relayWork) rest(ctx context.Context, pause time.Duration, wakeable bool) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	wake := w.wake
	if !wakeable {
		wake = nil
	}
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-wake:
	}
}

func (w *relayWork) report(ctx context.Context, s sweep) {
	if s.published > 0 {
		w.options.Log.DebugContext(ctx, "news published", "published", s.published, "oldest", time.Since(s.oldest))
	}
}

// listen wakes the relay at each commit that wrote news. Without a connection that hears,
// relayGlance stands in.
func (w *relayWork) listen(ctx context.Context) {
	for failures := uint64(0); ctx.Err() == nil; {
		err := w.options.Outbox.Listen(ctx, func() {
			failures = 0
			select {
			case w.wake <- struct{}{}:
			default: // awake already
			}
		})
		if ctx.Err() == nil {
			failures++
			w.options.Log.DebugContext(ctx, "outbox is looked at once a second until it is heard again", "error", err)
			wait(ctx, min(growing(failures), longestRelayPause))
		}
	}
}

// trim deletes old news from time to time. Nothing depends on it but disk space.
func (w *relayWork) trim(ctx context.Context) {
	for ctx.Err() == nil {
		deleted, err := w.options.Outbox.Trim(ctx, w.options.Keep)
		switch {
		case err != nil && ctx.Err() == nil:
			w.options.Log.WarnContext(ctx, "outbox could not be trimmed", "error", err)
		case deleted > 0:
			w.options.Log.InfoContext(ctx, "outbox trimmed", "deleted", deleted)
		}
		wait(ctx, trimEvery)
	}
}

// sweep is a way through the workspaces that have news, in passes. It goes on
// behind those that failed, so that they keep nobody else waiting.
type sweep struct {
	after             string
	more              bool
	published, failed int
	fault             error
	oldest            time.Time
}

// pass makes the next pass, and reports whether nothing moves: Postgres is away, or
// all of the pass failed.
func (s *sweep) pass(ctx context.Context, outbox *subscriptions.Outbox, p subscriptions.Publisher) bool {
	done, err := outbox.Relay(ctx, s.after, p)
	if err != nil {
		s.fault = err
		return true
	}
	s.published += done.Published
	s.failed += done.Failed
	s.more = s.more || done.More
	s.after = done.Next
	if done.Fault != nil {
		s.fault = done.Fault
	}
	if done.Published > 0 && (s.oldest.IsZero() || done.Oldest.Before(s.oldest)) {
		s.oldest = done.Oldest
	}
	return done.Failed > 0 && done.Published == 0
}

// goesOn reports whether there is more to publish at once. A sweep that has come
// to the end begins anew for those who had more than a pass takes.
func (s *sweep) goesOn() bool {
	if s.after != "" {
		return true
	}
	more := s.more
	s.more = false
	return more
}
