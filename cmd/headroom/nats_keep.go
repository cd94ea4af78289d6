package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// streamGlance is how often a running process looks whether its streams are there.
const streamGlance = 5 * time.Second

// keepStreams makes streams anew that the server lost while this process runs, until
// ctx ends. Without it nobody would, though all else works: the consumers of a stream
// end with it and with them the process, but some have none.
func keepStreams(ctx context.Context, js jetstream.JetStream, config Config, log *slog.Logger) {
	ticker := time.NewTicker(streamGlance)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		lost := lostStream(ctx, js, config)
		if lost == "" {
			continue
		}
		log.Warn("stream is gone and is made anew, what it held is lost", "stream", lost)
		if err := ensureStreams(ctx, js, config, log); err != nil && ctx.Err() == nil {
			log.Warn("streams could not be made anew", "error", err)
		}
	}
}

// lostStream is the name of a stream that is certainly not there, or empty.
func lostStream(ctx context.Context, js jetstream.JetStream, config Config) string {
	ctx, cancel := context.WithTimeout(ctx, streamGlance)
	defer cancel()
	for _, want := range config.topology().Streams() {
		_, err := js.Stream(ctx, want.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return want.Name
		}
	}
	return ""
}
