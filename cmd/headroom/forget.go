package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/headroomhq/headroom/enforcement/usage"
)

const (
	// forgetEvery is how often answers under idempotency keys are looked through.
	forgetEvery = time.Hour
	// forgetBatch is how many one statement forgets, so that none holds locks for long.
	forgetBatch = 1000
	// forgetPatience bounds one statement.
	forgetPatience = 10 * time.Second
)

// pruner forgets requests. usage.Counters does.
type pruner interface {
	// Prune forgets up to limit requests that are older than before, and returns how many.
	Prune(ctx context.Context, before time.Time, limit int) (int64, error)
}

// forgetRequests forgets the answers under idempotency keys that are older than
// usage.KeepRequests: at once, because a process may not live for an hour, and then each
// hour until ctx ends. Any number of instances may do so, none waits for another. What
// fails is logged once and left for the next hour.
func forgetRequests(ctx context.Context, requests pruner, log *slog.Logger) {
	ticker := time.NewTicker(forgetEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if err := forgetOld(ctx, requests); err != nil && ctx.Err() == nil {
			log.Warn("old answers under idempotency keys could not be forgotten", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// forgetOld forgets batch after batch, until one is not full.
func forgetOld(ctx context.Context, requests pruner) error {
	before := time.Now().Add(-usage.KeepRequests)
	for {
		asking, cancel := context.WithTimeout(ctx, forgetPatience)
		n, err := requests.Prune(asking, before, forgetBatch)
		cancel()
		if err != nil || n < forgetBatch {
			return err
		}
	}
}
