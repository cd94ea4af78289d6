package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
)

// drainDeadline bounds an orderly end, a little under the 30 s that
// orchestrators commonly wait before they kill.
const drainDeadline = 25 * time.Second

// serveCmd is the production process.
type serveCmd struct{}

// Help says what the command needs and how it ends.
func (serveCmd) Help() string {
	return "Reads execution events from NATS JetStream, decides them in Redis and publishes the decisions; keeps the ledger in PostgreSQL. " +
		"With HEADROOM_STRIPE_WEBHOOK_SECRETS it receives Stripe's events on /webhooks/stripe, and with HEADROOM_STRIPE_API_KEY it repairs what was missed.\n\n" +
		"The services may start in any order: what is not there yet is waited for. GET /healthz on HEADROOM_HTTP_ADDR answers while the " +
		"process lives, GET /readyz while it can decide, GET /metrics tells counts to Prometheus.\n\n" +
		"SIGTERM or SIGINT ends it in order, within 25 seconds; a second one at once, with status 1."
}

// Run serves until ctx ends.
func (serveCmd) Run(ctx context.Context, p *program) error {
	config, log, err := p.settings()
	if err != nil {
		return err
	}
	if config.isOpen() && isLoopback(config.HTTPAddr) {
		log.Warn("the API asks for no token: everybody on this machine may use it", "variable", "HEADROOM_API_TOKENS")
	}
	return serve(ctx, config, log, nil)
}

// serve runs the production process until ctx ends, and then lets everything
// that was begun finish: readiness first, so that nobody sends more, then Stripe's door and
// the consumers, HTTP, NATS, Redis and PostgreSQL. It returns nil when that was done within
// drainDeadline, and the first error of a part that failed. Unless ready is nil,
// the address of HTTP is sent there, once, as soon as Headroom can decide.
func serve(ctx context.Context, config Config, log *slog.Logger, ready chan<- string) error {
	if err := config.checkExposure(); err != nil {
		return err
	}
	tokens, err := config.tokens()
	if err != nil {
		return fmt.Errorf("read HEADROOM_API_TOKENS: %w", err)
	}
	health, metrics, door, doors := newHealth(), newMetrics(), newStripeDoor(config), newAPIDoor()
	if config.followsStripe() {
		health.followStripe()
	}
	http, err := listenHTTP(ctx, config.HTTPAddr, routes(served{
		health: health.handler(), metrics: metrics.handler(config.HTTPAddr, tokens, log), stripe: door, api: doors,
	}, log), log)
	if err != nil {
		return err
	}
	log.Info("listening", "addr", http.listener.Addr().String(), "version", readBuild().Version)

	parts, working := errgroup.WithContext(ctx)
	watched, end := context.WithCancel(working)
	defer end()
	parts.Go(http.serve)
	parts.Go(func() error {
		defer end()
		s := &service{config: config, log: log, health: health, metrics: metrics, http: http, door: door, api: doors}
		return s.run(working)
	})
	parts.Go(func() error {
		health.watch(watched, log, func() {
			if ready != nil {
				ready <- http.listener.Addr().String()
			}
		})
		return nil
	})
	if err := parts.Wait(); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	log.Info("stopped")
	return nil
}
