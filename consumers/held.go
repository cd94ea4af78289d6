package consumers

import (
	"errors"
	"time"

	"github.com/headroomhq/headroom/enforcement"
)

// longestHeldDelay bounds how late a slot is freed after Redis is back.
const longestHeldDelay = 5 * time.Second

// heldVerdict is the verdict on a completion or a progress, which are put off
// for as long as Redis is away.
func heldVerdict(b *breaker, m *message, err error, now time.Time) error {
	if !errors.Is(err, enforcement.ErrUnavailable) {
		return err
	}
	return &Defer{Reason: "Redis is away", Delay: heldDelay(b, m, now), Err: err}
}

// heldDelay is how long a message waits that has to reach Redis.
func heldDelay(b *breaker, m *message, now time.Time) time.Duration {
	return max(min(growing(m.delivered), longestHeldDelay), b.wait(now)+shortestDelay)
}

// tell tells the breaker how a call for many went: it failed if nothing worked
// and anything failed for want of the service.
func tell[T any](b *breaker, now time.Time, results []T, away func(T) (failed, away bool)) {
	missed := false
	for _, result := range results {
		failed, isAway := away(result)
		if !failed {
			b.worked()
			return
		}
		missed = missed || isAway
	}
	if missed {
		b.failed(now)
	}
}

// unavailable tells of a call's error. A workspace that is being rebuilt is no fault of
// Redis, and no reason to keep others waiting.
func unavailable(err error) (failed, away bool) {
	return err != nil, errors.Is(err, enforcement.ErrUnavailable) && !isRebuilding(err)
}

func isRebuilding(err error) bool {
	_, is := errors.AsType[*enforcement.Rebuilding](err)
	return is
}
