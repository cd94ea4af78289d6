package schemas

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationTable records what is applied. It has a name of its own, so that
// Headroom can live in a database whose owner uses goose as well.
const migrationTable = "headroom_migrations"

// The lock is asked for every second, for up to ten minutes: another process
// may be in the middle of a long migration.
const lockAttempts = 600

// Migrate brings the database up to date: it applies, in order, the migrations
// that are not applied yet. Any number of processes may call it at once; one
// works, under an advisory lock of the database, and the others wait and find
// nothing to do. Each migration is a transaction: on an error, which names
// the migration, those before it stay applied and a later call goes on.
func Migrate(ctx context.Context, postgresURL string, log *slog.Logger) error {
	config, err := pgx.ParseConfig(postgresURL)
	if err != nil {
		return fmt.Errorf("migrate: read the postgres url: %w", err)
	}
	db := stdlib.OpenDB(*config)
	defer func() { _ = db.Close() }()
	provider, err := newProvider(db)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	results, err := provider.Up(ctx)
	var partial *goose.PartialError
	if errors.As(err, &partial) {
		logApplied(ctx, log, partial.Applied)
		return fmt.Errorf("migrate: apply %s: %w", path.Base(partial.Failed.Source.Path), partial.Err)
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	logApplied(ctx, log, results)
	log.InfoContext(ctx, "database is up to date", "applied", len(results))
	return nil
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, fmt.Errorf("open migrations: %w", err)
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, lockAttempts))
	if err != nil {
		return nil, fmt.Errorf("make migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker), goose.WithTableName(migrationTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return provider, nil
}

func logApplied(ctx context.Context, log *slog.Logger, results []*goose.MigrationResult) {
	for _, r := range results {
		log.InfoContext(ctx, "migration applied", "migration", path.Base(r.Source.Path), "duration", r.Duration)
	}
}
