package consumers

import (
	"sync"
	"time"
)

// The pause after a failure doubles from the first to the longest.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// breaker keeps the lanes of a kind from hammering a service that is away:
// after a failure none of them calls it for a short pause, which grows while the
// failures last. What comes in the meantime is deferred.
type breaker struct {
	mu    sync.Mutex
	pause time.Duration
	until time.Time
}

// wait is how long the pause still lasts, 0 when the service may be called.
func (b *breaker) wait(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.until.Sub(now), 0)
}

// failed begins a pause. Failures of calls that were under way when one began
// do not lengthen it.
func (b *breaker) failed(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Before(b.until) {
		return
	}
	b.pause = min(max(2*b.pause, firstPause), longestPause)
	b.until = now.Add(b.pause)
}

// worked ends the pause.
func (b *breaker) worked() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pause, b.until = 0, time.Time{}
}
