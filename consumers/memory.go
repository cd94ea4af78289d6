package consumers

import (
	"sync"
	"time"
)

// memory is what this process remembers of messages it could not finish, by
// their sequence in the stream, until they are. All lanes of a kind share one.
// It is lost with the process, and nothing right may rest on it.
type memory struct {
	most int

	mu    sync.Mutex
	notes map[uint64]*note
}

type note struct {
	since    time.Time // when the message first failed for want of a service
	touched  time.Time
	attempts int  // failures that are the message's own
	refused  bool // a 9008 is published for it, and not yet on record in Redis
	told     bool // the caches were told of it
}

// memoryLife is how long a note is kept after its message was last seen: much
// longer than the longest delay, so what is older went to another process.
const memoryLife = 10 * time.Minute

func newMemory(most int) *memory {
	return &memory{most: most, notes: make(map[uint64]*note)}
}

func (m *memory) note(sequence uint64, now time.Time) *note {
	n, known := m.notes[sequence]
	if !known {
		if len(m.notes) >= m.most {
			m.prune(now)
		}
		n = &note{}
		m.notes[sequence] = n
	}
	n.touched = now
	return n
}

// prune drops what is old, and if that is not a tenth of all, any others: it looks
// at every note, and must not do so for each new one.
func (m *memory) prune(now time.Time) {
	for sequence, n := range m.notes {
		if now.Sub(n.touched) > memoryLife {
			delete(m.notes, sequence)
		}
	}
	for sequence := range m.notes {
		if len(m.notes) <= m.most-m.most/10 {
			return
		}
		delete(m.notes, sequence)
	}
}

// failing is since when the message fails for want of a service: now, if this
// is the first time.
func (m *memory) failing(sequence uint64, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.note(sequence, now)
	if n.since.IsZero() {
		n.since = now
	}
	return n.since
}

// attempt counts a failure of the message's own and is their number.
func (m *memory) attempt(sequence uint64, now time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.note(sequence, now)
	n.attempts++
	return n.attempts
}

// refuse notes that the message is answered with a 9008.
func (m *memory) refuse(sequence uint64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(sequence, now).refused = true
}

func (m *memory) isRefused(sequence uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, known := m.notes[sequence]
	return known && n.refused
}

// tell notes that the caches were told of the message.
func (m *memory) tell(sequence uint64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(sequence, now).told = true
}

func (m *memory) isTold(sequence uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, known := m.notes[sequence]
	return known && n.told
}

// forget drops what is known of messages that are done.
func (m *memory) forget(sequence uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.notes, sequence)
}
