package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// How long between two tries to reach a service at start-up.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 5 * time.Second
	// tryTimeout bounds one try, so that a service which accepts and never
	// answers is reported like one that is not there.
	tryTimeout = 10 * time.Second
)

// bounded makes a try end within tryTimeout.
func bounded(try func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, tryTimeout)
		defer cancel()
		return try(ctx)
	}
}

// refused is a service that is there but must not be used as it is set up.
func refused(format string, args ...any) error {
	return backoff.Permanent(fmt.Errorf(format, args...))
}

// await tries until the service answers, so that the order in which the parts
// of an installation start does not matter. Each failure is logged and told to
// health. It gives up when ctx ends, and at once on a refused service.
func await(ctx context.Context, log *slog.Logger, part *part, try func(context.Context) error) error {
	pause := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(firstRetry), backoff.WithMaxInterval(lastRetry), backoff.WithMaxElapsedTime(0))
	notify := func(err error, wait time.Duration) {
		part.fail(err)
		log.Warn("service is not ready yet", "service", part.name, "error", err, "retry_in", wait.Round(time.Millisecond).String())
	}
	if err := backoff.RetryNotify(func() error { return try(ctx) }, backoff.WithContext(pause, ctx), notify); err != nil {
		return fmt.Errorf("start %s: %w", part.name, err)
	}
	return nil
}
