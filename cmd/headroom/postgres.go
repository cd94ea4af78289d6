package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// postgresFloor is the oldest server version supported, as server_version_num.
	postgresFloor = 150000
	// postgresConnectTimeout bounds one connection attempt where POSTGRES_URL does not.
	postgresConnectTimeout = 2 * time.Second
	// postgresConnections is the most connections of a pool where POSTGRES_URL does
	// not say (pool_max_conns): a batch may miss the plan cache for many workspaces.
	postgresConnections = 10
)

// newPostgres makes a pool that connects when it is first used. Its sessions
// work in UTC whatever the server's default.
func newPostgres(ctx context.Context, config Config) (*pgxpool.Pool, error) {
	options, err := pgxpool.ParseConfig(config.PostgresURL.Reveal())
	if err != nil {
		return nil, errors.New("read HEADROOM_POSTGRES_URL: not a PostgreSQL URL") // the parser's error may show a password
	}
	options.ConnConfig.RuntimeParams["timezone"] = "UTC"
	if _, given := options.ConnConfig.RuntimeParams["application_name"]; !given {
		options.ConnConfig.RuntimeParams["application_name"] = "headroom"
	}
	if options.ConnConfig.ConnectTimeout == 0 {
		options.ConnConfig.ConnectTimeout = postgresConnectTimeout
	}
	if !strings.Contains(config.PostgresURL.Reveal(), "pool_max_conns") {
		options.MaxConns = max(options.MaxConns, postgresConnections)
	}
	pool, err := pgxpool.NewWithConfig(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("prepare the database pool: %w", err)
	}
	return pool, nil
}

// vetPostgres refuses a server that is too old, and warns when the session is
// not in UTC, which a connection pooler between may cause.
func vetPostgres(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	var version, zone string
	const query = `SELECT current_setting('server_version_num'), current_setting('timezone')`
	if err := pool.QueryRow(ctx, query).Scan(&version, &zone); err != nil {
		return fmt.Errorf("ask for the server's version: %w", err)
	}
	number, err := strconv.Atoi(version)
	if err != nil {
		return refused("read the server's version %q: %w", version, err)
	}
	if number < postgresFloor {
		return refused("the server is PostgreSQL %d, Headroom needs 15 or later", number/10000)
	}
	if zone != "UTC" {
		log.Warn("database session is not in UTC", "timezone", zone, "remedy", "let the pooler pass the timezone parameter on")
	}
	return nil
}
