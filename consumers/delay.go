package consumers

import (
	"math/rand/v2"
	"time"
)

// The delay before a message is delivered again doubles with its deliveries.
const (
	firstDelay   = 50 * time.Millisecond
	longestDelay = 30 * time.Second
	// shortestDelay is what a message waits at least, and beyond a breaker's pause,
	// so that it does not come back just before the pause is over.
	shortestDelay = 5 * time.Millisecond
)

// growing is the delay after the given number of deliveries, with a random part
// of up to a half, so that messages that failed together do not return together.
func growing(delivered uint64) time.Duration {
	delay := longestDelay
	if doublings := max(delivered, 1) - 1; doublings < 16 {
		delay = min(firstDelay<<doublings, longestDelay)
	}
	return delay/2 + rand.N(delay/2) //nolint:gosec // spreading a delay needs no secret
}
