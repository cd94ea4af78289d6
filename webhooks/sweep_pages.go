package webhooks

import (
	"context"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	// listPause is kept between two pages of a list, so that a long list leaves the
	// account's rate to what is urgent.
	listPause = 100 * time.Millisecond
	// busyPause follows the first page that failed, busyPatience bounds all of them.
	busyPause    = 500 * time.Millisecond
	busyPatience = 2 * time.Minute
)

// pages lists politely.
type pages struct {
	api *API
	// pause is kept between two pages.
	pause time.Duration
	// log hears of each page that is asked for again.
	log *slog.Logger
}

// each hands over a list page by page, newest first, until the caller says to stop. A
// page that is refused for its rate, or fails otherwise than for good, is asked for
// again with growing pauses.
func (p pages) each(ctx context.Context, c call, each func(listPage) (more bool, err error)) error {
	first := true
	ask := func(c call) (listPage, error) {
		if !first && !rest(ctx, p.pause) {
			return listPage{}, ctx.Err()
		}
		first = false
		return p.one(ctx, c)
	}
	return walk(c, ask, each)
}

func (p pages) one(ctx context.Context, c call) (listPage, error) {
	growing := backoff.NewExponentialBackOff(backoff.WithInitialInterval(busyPause), backoff.WithMaxElapsedTime(busyPatience))
	return backoff.RetryNotifyWithData(func() (listPage, error) {
		page, err := p.api.page(ctx, c)
		if err != nil && !isFault(err, faultBusy) {
			return listPage{}, backoff.Permanent(err)
		}
		return page, err
	}, backoff.WithContext(growing, ctx), func(err error, pause time.Duration) {
		p.log.WarnContext(ctx, "stripe did not list a page and is asked again", "error", err, "again_in", pause)
	})
}

// rest waits, and reports whether the context still lives.
func rest(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
