package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/schemas"
)

// pgUndefinedTable is PostgreSQL's code for a table that does not exist.
const pgUndefinedTable = "42P01"

// admin is what a command works with that reads or changes the database and
// then ends.
type admin struct {
	*program
	config   Config
	log      *slog.Logger
	postgres *pgxpool.Pool
}

// withAdmin runs work with a database that answers, and closes it.
func (p *program) withAdmin(ctx context.Context, work func(*admin) error) error {
	config, log, err := p.settings()
	if err != nil {
		return err
	}
	pool, err := newPostgres(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := pool.Ping(ctx); err != nil {
		return fmt.Errorf("reach PostgreSQL at %s (HEADROOM_POSTGRES_URL): %w", config.PostgresURL, err)
	}
	err = work(&admin{program: p, config: config, log: log, postgres: pool})
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok && answer.Code == pgUndefinedTable {
		return fmt.Errorf("%w\nThe database is not prepared: run \"headroom migrate\" first", err)
	}
	return err
}

// note tells a person something beside the result, on stderr.
func (p *program) note(format string, args ...any) {
	fmt.Fprintf(p.stderr, format+"\n", args...)
}

// idRule says what an identifier may be.
const idRule = "must be 1 to 128 letters, digits, _ and -, beginning with a letter or digit"

// checkID refuses an argument that can't be an identifier.
func checkID(kind, id string) error {
	if schemas.ValidID(id) {
		return nil
	}
	return &usageError{Err: fmt.Errorf("%s %q: %s", kind, id, idRule)}
}

// parseInstant reads RFC 3339, or a date as its first moment in UTC.
func parseInstant(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time; write 2026-11-30T12:00:00Z or 2026-11-30", text)
}
