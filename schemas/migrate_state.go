package schemas

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// undefinedTable is PostgreSQL's code for a table that does not exist.
const undefinedTable = "42P01"

// MigrationState is how a database stands to the migrations of this binary.
type MigrationState struct {
	// Missing are the migrations that are not applied, by file name, in order.
	Missing []string
	// Unknown are applied versions that this binary does not have: a newer one was here.
	Unknown []int64
}

// querier is a connection, a transaction or a pool.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Migrations compares the database with the migrations of this binary. It changes
// nothing and waits for nobody; of an empty database all are missing.
func Migrations(ctx context.Context, db querier) (MigrationState, error) {
	applied, err := appliedVersions(ctx, db)
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok && answer.Code == undefinedTable {
		applied, err = nil, nil
	}
	if err != nil {
		return MigrationState{}, fmt.Errorf("read applied migrations: %w", err)
	}
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return MigrationState{}, fmt.Errorf("list migrations: %w", err)
	}
	var state MigrationState
	for _, name := range names {
		number, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return MigrationState{}, fmt.Errorf("list migrations: %s: %w", name, err)
		}
		before := len(applied)
		applied = slices.DeleteFunc(applied, func(is int64) bool { return is == version })
		if len(applied) == before {
			state.Missing = append(state.Missing, path.Base(name))
		}
	}
	state.Unknown = applied
	return state, nil
}

// appliedVersions leaves out 0, which goose writes when it makes the table.
func appliedVersions(ctx context.Context, db querier) ([]int64, error) {
	rows, err := db.Query(ctx, `SELECT DISTINCT version_id FROM `+migrationTable+` WHERE is_applied AND version_id > 0 ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}
