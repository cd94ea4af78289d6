package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

// vetNATS is nil when a server that is new enough answers with JetStream on.
func vetNATS(ctx context.Context, nc *nats.Conn) error {
	if err := checkNATS(ctx, nc); err != nil {
		return err
	}
	if _, err := schemas.CheckServer(nc); errors.Is(err, schemas.ErrServerTooOld) {
		return refused("%w", err)
	} else if err != nil {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("open jetstream: %w", err)
	}
	if _, err := js.AccountInfo(ctx); err != nil {
		return fmt.Errorf("ask for jetstream, which the server must have switched on: %w", err)
	}
	return nil
}

// ensureStreams creates what is missing of streams and consumers, and warns of
// each setting that is narrower than Headroom needs.
func ensureStreams(ctx context.Context, js jetstream.JetStream, config Config, log *slog.Logger) error {
	report, err := config.topology().Ensure(ctx, js)
	if err != nil {
		return err
	}
	for _, finding := range report.Findings {
		log.Warn("stream is narrower than needed and was left as it is",
			"object", finding.Object, "setting", finding.Setting, "have", finding.Have, "want", finding.Want)
	}
	log.Info("streams are up to date", "created", len(report.Created), "updated", len(report.Updated), "findings", len(report.Findings))
	return nil
}
