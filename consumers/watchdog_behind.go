package consumers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
)

// behind knows whether the ledger has caught up: with what the streams held when they
// were last asked, not with what they hold now, which it may never have under load.
type behind struct {
	js     jetstream.JetStream
	ledger *ledger.Store
	marks  []streamEnd
	// asked is when the streams were asked, zero once the ledger has come that far.
	asked time.Time
}

// errBehind means that the ledger does not keep up, or that a stream was made anew.
var errBehind = errors.New("the ledger is more than a minute behind the streams")

// streamEnd is the last message of a subject that the ledger must have.
type streamEnd struct {
	stream, subject string
	last            uint64
}

func (w *Watchdog) behind() *behind {
	t := w.options.Topology
	return &behind{js: w.options.JetStream, ledger: w.options.Ledger, marks: []streamEnd{
		{stream: t.Stream(schemas.StreamExecutions), subject: t.Completed("*")},
		{stream: t.Stream(schemas.StreamDecisions), subject: t.Decision("*")},
	}}
}

// caughtUp asks the streams where they end, unless it has, and reports whether the
// ledger has come that far. Once it has, the streams are asked anew; and when it does
// not come that far in a minute, with errBehind.
func (b *behind) caughtUp(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, watchdogPatience)
	defer cancel()
	if b.asked.IsZero() {
		asked := time.Now()
		for i, m := range b.marks {
			last, err := b.lastOf(ctx, m)
			if err != nil {
				return false, err
			}
			b.marks[i].last = last
		}
		b.asked = asked
	}
	for _, m := range b.marks {
		applied, err := b.ledger.Applied(ctx, m.stream)
		if err != nil {
			return false, err
		}
		if applied >= m.last {
			continue
		}
		if time.Since(b.asked) > time.Minute {
			b.asked = time.Time{}
			return false, errBehind
		}
		return false, nil
	}
	b.asked = time.Time{}
	return true, nil
}

func (b *behind) lastOf(ctx context.Context, m streamEnd) (uint64, error) {
	stream, err := b.js.Stream(ctx, m.stream)
	if err != nil {
		return 0, fmt.Errorf("open stream %s: %w", m.stream, err)
	}
	last, err := stream.GetLastMsgForSubject(ctx, m.subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the end of stream %s: %w", m.stream, err)
	}
	return last.Sequence, nil
}

// trouble is how long the same work has failed.
type trouble struct {
	failures uint64
	until    time.Time
}

// pause is how long to rest after work that ended like that. The first failure of a
// row and its end are logged.
func (t *trouble) pause(ctx context.Context, log *slog.Logger, err error) time.Duration {
	switch {
	case err == nil && t.failures > 0:
		t.failures = 0
		log.InfoContext(ctx, "the watchdog works again")
	case err != nil && ctx.Err() == nil:
		t.failures++
		if t.failures == 1 {
			log.WarnContext(ctx, "the watchdog waits", "error", err)
		}
	}
	if t.failures == 0 {
		return watchdogGlance
	}
	return min(watchdogGlance<<min(t.failures-1, 10), longestWatchdogPause)
}

// rest has the work left alone for a while, after an error.
func (t *trouble) rest(err error, pause time.Duration) {
	t.until = time.Time{}
	if err != nil {
		t.until = time.Now().Add(pause)
	}
}

func (t *trouble) rests() bool { return time.Now().Before(t.until) }
