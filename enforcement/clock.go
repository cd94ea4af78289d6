package enforcement

import (
	"sync/atomic"
	"time"
)

// clock tells Redis's time from this machine's, by what the last reply said.
// Which period an admission falls into is Redis's to say (the script refuses a
// period that does not contain its now), so plans are looked up by its clock.
type clock struct {
	ahead atomic.Int64 // nanoseconds that Redis is ahead of this machine
}

func (c *clock) observe(redisMillis int64, local time.Time) {
	if redisMillis > 0 {
		c.ahead.Store(int64(time.UnixMilli(redisMillis).Sub(local)))
	}
}

func (c *clock) at(local time.Time) time.Time {
	return local.Add(time.Duration(c.ahead.Load())).UTC()
}
