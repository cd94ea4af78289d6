package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headroomhq/headroom/schemas"
)

// migrateCmd brings database and streams up to date.
type migrateCmd struct{}

// Help says when the command is needed.
func (migrateCmd) Help() string {
	return "Applies the migrations that the database lacks, and creates or widens the streams and consumers. " +
		"`headroom serve` does the same when it starts; run this alone to prepare an installation or when serve may not change the schema. " +
		"A stream that exists with narrower settings is reported, not changed."
}

// Run migrates both, and fails when one of the services is not there.
func (migrateCmd) Run(ctx context.Context, p *program) error {
	config, log, err := p.settings()
	if err != nil {
		return err
	}
	if err := migrate(ctx, config, log); err != nil {
		return err
	}
	nc, js, err := dialNATS(config, natsDialTimeout)
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := bounded(func(ctx context.Context) error { return vetNATS(ctx, nc) })(ctx); err != nil {
		return fmt.Errorf("check nats: %w", err)
	}
	return ensureStreams(ctx, js, config, log)
}

// migrate brings the database up to date. An answer of the server that another
// try would not change is final.
func migrate(ctx context.Context, config Config, log *slog.Logger) error {
	err := schemas.Migrate(ctx, config.PostgresURL.Reveal(), log)
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok && !passing(answer) {
		return refused("%w", err)
	}
	return err
}

// passing reports whether the server's answer is about its own state at the
// moment (connections, shutdown, resources), by the class of its code.
func passing(answer *pgconn.PgError) bool {
	switch answer.Code[:min(2, len(answer.Code))] {
	case "08", "53", "57", "40", "55":
		return true
	default:
		return false
	}
}
