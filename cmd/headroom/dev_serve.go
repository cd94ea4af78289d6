package main

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
)

// readyGlance is how often readiness is looked at while Headroom starts.
const readyGlance = 10 * time.Millisecond

// serveUntil is serve for somebody in the same process: it tells the address of
// HTTP as soon as Headroom can decide.
func serveUntil(ctx context.Context, config Config, log *slog.Logger, ready chan<- string) error {
	health := newHealth()
	http, err := listenHTTP(ctx, config.HTTPAddr, health.handler(), log)
	if err != nil {
		return err
	}
	parts, working := errgroup.WithContext(ctx)
	parts.Go(http.serve)
	parts.Go(func() error {
		s := &service{config: config, log: log, health: health, http: http}
		return s.run(working)
	})
	parts.Go(func() error {
		if health.await(working) {
			ready <- http.listener.Addr().String()
		}
		return nil
	})
	return parts.Wait()
}

// await is true once everything is ready, and false when ctx ended before.
func (h *health) await(ctx context.Context) bool {
	ticker := time.NewTicker(readyGlance)
	defer ticker.Stop()
	for h.read(ctx).Status != statusReady {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}
