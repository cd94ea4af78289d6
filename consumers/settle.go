package consumers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// settler turns verdicts into acknowledgements. No other file of the project
// calls an ack verb.
type settler struct {
	kind        string
	letters     *deadLetters
	memory      *memory
	stats       *Stats
	maxAttempts int
	ackWait     time.Duration
	now         func() time.Time
	log         *slog.Logger
	probe       probe
}

// settle does to each message of a batch what its verdict says. A message whose
// settling fails is delivered again, which is always safe.
func (s *settler) settle(ctx context.Context, batch []*message, verdicts []error) {
	s.probe.at(s.kind, "settling")
	var dead []letter
	var deferred []error
	done := 0
	for i, m := range batch {
		verdict := s.judge(m, verdicts[i])
		var asked *Defer
		var gone *Dead
		switch {
		case verdict == nil:
			s.acknowledge(m)
			done++
		case errors.As(verdict, &gone):
			dead = append(dead, letter{message: m, reason: gone.Reason})
		case errors.As(verdict, &asked):
			s.stats.deferred.Add(1)
			s.later(m, asked.Delay)
			deferred = append(deferred, verdict)
		default:
			s.stats.retried.Add(1)
			s.retry(m, verdict)
		}
	}
	if len(deferred) > 0 { // all for one reason, as a rule, and every time they come again
		s.log.Warn("messages deferred", "kind", s.kind, "messages", len(deferred), "error", deferred[0])
	}
	s.bury(ctx, dead)
	s.log.DebugContext(ctx, "batch settled", "kind", s.kind, "messages", len(batch), "acknowledged", done)
	s.probe.at(s.kind, "settled")
}

// judge counts a failure that is the message's own, and turns one too many
// into a dead letter.
func (s *settler) judge(m *message, verdict error) error {
	var asked *Defer
	var gone *Dead
	if verdict == nil || errors.As(verdict, &asked) || errors.As(verdict, &gone) {
		return verdict
	}
	attempts := s.memory.attempt(m.sequence, s.now())
	if attempts < s.maxAttempts {
		return verdict
	}
	return &Dead{Reason: fmt.Sprintf("gave up after %d attempts: %v", attempts, verdict)}
}

func (s *settler) acknowledge(m *message) {
	s.memory.forget(m.sequence)
	if err := m.raw.Ack(); err != nil {
		s.log.Warn("acknowledge failed, the message will come again", s.about(m, err)...)
		return
	}
	s.stats.acknowledged.Add(1)
}

// later asks for another delivery; a delay of 0 grows with the deliveries.
func (s *settler) later(m *message, delay time.Duration) {
	if delay <= 0 {
		delay = growing(m.delivered)
	}
	if err := m.raw.NakWithDelay(delay); err != nil {
		s.log.Warn("deferral failed, the message will come again after the ack wait", s.about(m, err)...)
	}
}

// retry asks for another delivery of a message that failed.
func (s *settler) retry(m *message, why error) {
	s.later(m, 0)
	var fault *panicked
	about := s.about(m, why)
	if errors.As(why, &fault) {
		about = append(about, "stack", string(fault.stack))
	}
	s.log.Warn("message failed, it will come again", about...)
}

// bury writes the dead letters, and ends a message only once its letter is stored.
func (s *settler) bury(ctx context.Context, dead []letter) {
	if len(dead) == 0 {
		return
	}
	stored := s.letters.write(ctx, dead)
	s.probe.at(s.kind, "buried")
	for i, err := range stored {
		m, reason := dead[i].message, dead[i].reason
		if err != nil {
			s.stats.deferred.Add(1)
			s.retry(m, fmt.Errorf("write dead letter: %w", err))
			continue
		}
		s.memory.forget(m.sequence)
		if err := m.raw.TermWithReason(headerText(reason)); err != nil {
			s.log.Warn("termination failed, the message will come again", s.about(m, err)...)
			continue
		}
		s.stats.dead.Add(1)
		s.log.Warn("message dead lettered", append(s.about(m, nil), "reason", reason)...)
	}
}

func (s *settler) about(m *message, err error) []any {
	about := []any{"kind", s.kind, "subject", m.subject, "sequence", m.sequence, "deliveries", m.delivered}
	if err != nil {
		about = append(about, "error", err)
	}
	return about
}

// hold keeps the server from delivering a batch again while it is worked on: it
// asks for time every third of the ack wait, until the release it returns is called.
func (s *settler) hold(batch []*message) (release func()) {
	var mu sync.Mutex
	released := false
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(s.ackWait/3, func() {
		mu.Lock()
		defer mu.Unlock()
		if released {
			return
		}
		for _, m := range batch {
			if err := m.raw.InProgress(); err != nil {
				s.log.Warn("asking for time failed, the batch may come again", s.about(m, err)...)
				break
			}
		}
		timer.Reset(s.ackWait / 3)
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		released = true
		timer.Stop()
	}
}
