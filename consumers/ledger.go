package consumers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
)

const (
	// kindLedger is what a probe knows the ledger by.
	kindLedger = "ledger"
	// foldMost is the most messages in one fold.
	foldMost = 1000
	// leaderPoll is how often a process that does not lead asks whether it may.
	leaderPoll = 500 * time.Millisecond
	// leaderCheck is how often the leader sees whether it still is.
	leaderCheck = 5 * time.Second
	// foldTimeout bounds one fold.
	foldTimeout = 30 * time.Second
)

// folder keeps the ledger: it reads decisions, completions and invalidations in order from
// where the ledger stands, and folds what waits into Postgres. Of all processes
// one leads and folds, the others stand by. Why nothing is folded twice or
// skipped, even if two believe that they lead: see package ledger.
type folder struct {
	js      jetstream.JetStream
	store   *ledger.Store
	tails   []tail
	letters *deadLetters
	stats   *Stats
	probe   probe
	log     *slog.Logger
}

func (c *Consumers) folder(p publisher) *folder {
	t, bytes := c.options.Topology, c.mostBytes()
	return &folder{
		js: c.options.JetStream, store: c.options.Ledger, stats: c.stats, probe: c.probe, log: c.options.Log,
		letters: c.deadLetters(p, "decisions", "made"),
		tails: []tail{
			{stream: t.Stream(schemas.StreamDecisions), subject: t.Decision("*"), bytes: bytes, read: readDecision},
			{stream: t.Stream(schemas.StreamExecutions), subject: t.Completed("*"), bytes: bytes, read: readCompletion},
			{stream: t.Stream(schemas.StreamPlans), subject: t.Invalidated("*"), bytes: bytes, read: readInvalidation},
		},
	}
}

// run keeps the ledger until ctx ends, and then finishes the fold under way. A
// failure of NATS or Postgres begins anew from the ledger's position, after a
// growing pause.
func (f *folder) run(ctx, work context.Context) error {
	for failures := uint64(0); ctx.Err() == nil; {
		started := time.Now()
		err := f.lead(ctx, work)
		if time.Since(started) > longestHeldDelay {
			failures = 0
		}
		pause := leaderPoll
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, ledger.ErrNotLeader):
			f.log.DebugContext(ctx, "another process keeps the ledger")
		default:
			failures++
			pause = min(growing(failures), longestHeldDelay)
			f.log.WarnContext(ctx, "keeping the ledger was interrupted", "error", err, "pause", pause)
		}
		wait(ctx, pause)
	}
	return nil
}

func wait(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// lead folds for as long as this process leads and nothing fails.
func (f *folder) lead(ctx, work context.Context) error {
	leadership, err := f.store.TryLead(ctx)
	if err != nil {
		return err
	}
	defer leadership.Release(work)
	f.log.DebugContext(ctx, "this process keeps the ledger")
	reading, stop := context.WithCancel(ctx)
	defer stop()
	s := session{folder: f, leadership: leadership, positions: make(map[string]uint64), entries: make(chan entry, foldMost), ended: make(chan error, len(f.tails))}
	defer s.close(stop)
	for _, t := range f.tails {
		if err := s.follow(reading, t); err != nil {
			return err
		}
	}
	return s.fold(ctx, work)
}

// session is one leadership's work.
type session struct {
	*folder
	leadership *ledger.Leadership
	positions  map[string]uint64
	entries    chan entry
	ended      chan error
	done       []<-chan struct{}
}

func (s *session) follow(ctx context.Context, t tail) error {
	from, err := t.open(ctx, s.js, s.store, s.log)
	if err != nil {
		return err
	}
	from.out, from.ended = s.entries, s.ended
	s.positions[from.source] = from.position
	if err := t.follow(ctx, s.js, from); err != nil {
		return err
	}
	s.done = append(s.done, from.done)
	return nil
}

// close ends the reading and waits until it has.
func (s *session) close(stop context.CancelFunc) {
	stop()
	for _, done := range s.done {
		<-done
	}
}

// fold folds what waits, whenever anything does.
func (s *session) fold(ctx, work context.Context) error {
	check := time.NewTicker(leaderCheck)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.ended:
			return err
		case <-check.C:
			if err := s.leadership.Check(ctx); err != nil {
				return err
			}
		case first := <-s.entries:
			if err := s.foldBatch(work, gather(first, s.entries)); err != nil {
				return err
			}
		}
	}
}

func gather(first entry, more <-chan entry) []entry {
	batch := []entry{first}
	for len(batch) < foldMost {
		select {
		case next := <-more:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

func (s *session) foldBatch(ctx context.Context, batch []entry) error {
	ctx, cancel := context.WithTimeout(ctx, foldTimeout)
	defer cancel()
	var bad []letter
	for _, e := range batch {
		if e.fault != nil {
			bad = append(bad, letter{message: e.message, reason: refusedBody(e.fault).Reason})
		}
	}
	if err := s.bury(ctx, bad); err != nil {
		return err
	}
	return s.foldParts(ctx, batch)
}

// foldParts folds the batch. If Postgres refuses what is in it, each half is folded
// for itself, until what is refused is found: that is written to the dead letters and left out.
func (s *session) foldParts(ctx context.Context, batch []entry) error {
	b := batchOf(batch, s.positions)
	s.probe.at(kindLedger, "folding")
	err := s.store.Fold(ctx, b)
	s.probe.at(kindLedger, "folded")
	if err == nil {
		s.moved(b)
		s.stats.folded.Add(int64(len(batch)))
		return nil
	}
	if !ledger.IsRefused(err) {
		return err
	}
	if half := len(batch) / 2; half > 0 {
		// The second half must not be folded without the first: its position would skip it.
		if err := s.foldParts(ctx, batch[:half]); err != nil {
			return err
		}
		return s.foldParts(ctx, batch[half:])
	}
	if err := s.bury(ctx, []letter{{message: batch[0].message, reason: "refused by the ledger: " + err.Error()}}); err != nil {
		return err
	}
	return s.foldParts(ctx, []entry{{source: batch[0].source, message: batch[0].message}})
}

func (s *session) moved(b ledger.Batch) {
	for _, span := range b.Spans {
		s.positions[span.Source] = span.Through
	}
}

// bury writes dead letters; without them nothing is skipped.
func (s *session) bury(ctx context.Context, bad []letter) error {
	if len(bad) == 0 {
		return nil
	}
	if err := errors.Join(s.letters.write(ctx, bad)...); err != nil {
		return err
	}
	for _, l := range bad {
		s.stats.dead.Add(1)
		s.log.ErrorContext(ctx, "message left out of the ledger", "subject", l.message.subject,
			"sequence", l.message.sequence, "reason", l.reason)
	}
	return nil
}
