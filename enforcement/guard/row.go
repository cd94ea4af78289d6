package guard

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// RowTable makes the table of a RowLock without a query of the application's own. Put it
// into a migration, or call RowLock.Setup. It gets a row for each key that is ever guarded.
const RowTable = `CREATE TABLE IF NOT EXISTS headroom_guard_keys (key text PRIMARY KEY)`

const (
	lockRow = `SELECT 1 FROM headroom_guard_keys WHERE key = @key FOR NO KEY UPDATE`
	makeRow = `INSERT INTO headroom_guard_keys (key) VALUES (@key) ON CONFLICT DO NOTHING`
	// setupRows goes one at a time: IF NOT EXISTS is no protection from another who does the same.
	setupRows = `SELECT pg_advisory_xact_lock(hashtextextended('headroom_guard_keys', 0)); ` + RowTable
)

var locking = regexp.MustCompile(`(?i)\bFOR\s+(NO\s+KEY\s+)?UPDATE\b`)

// RowOptions are the settings of a RowLock.
type RowOptions struct {
	PostgresOptions
	// Query locks a row of the application's own, such as the organization's. It must find
	// exactly one, and lock it: `… WHERE id = @organization FOR NO KEY UPDATE`. With
	// FOR UPDATE, inserts that refer to the row would have to wait. @organization and @privilege
	// are text, as the request has them; another type needs a cast.
	//
	// Empty uses the table that RowTable makes, and makes rows there as they are needed.
	Query string
}

// RowLock serialises the guards of all processes on one database by a row. The wait can be
// seen in the schema, and other writers can take part in it by locking the row.
type RowLock struct {
	*transactions
	query string
}

// NewRowLock makes a lock on the pool's database. It refuses a query that locks nothing.
func NewRowLock(pool *pgxpool.Pool, o RowOptions) (*RowLock, error) {
	if o.Query != "" && !locking.MatchString(o.Query) {
		return nil, errors.New("make a row lock: Query must end with FOR NO KEY UPDATE, otherwise it locks nothing")
	}
	return &RowLock{transactions: newTransactions(pool, o.PostgresOptions), query: o.Query}, nil
}

// Setup makes the table of a lock without a query; with one it has nothing to do.
func (l *RowLock) Setup(ctx context.Context) error {
	if l.query != "" {
		return nil
	}
	if _, err := l.pool.Exec(ctx, setupRows); err != nil {
		return fmt.Errorf("make the table of guarded keys: %w", err)
	}
	return nil
}

// Run is that of Lock: the row, count and act in one transaction. A row of the application's
// that is not there is a *LockUnavailable, because what does not exist cannot be locked.
func (l *RowLock) Run(ctx context.Context, key Key, fn func(ctx context.Context, tx pgx.Tx) error) error {
	release, deadline, err := l.queue(ctx, key)
	if err != nil {
		return err
	}
	defer release()
	return l.transact(ctx, attempt{key: key, deadline: deadline, hold: l.hold, fn: fn})
}

func (l *RowLock) hold(ctx context.Context, c claim) (pgx.Tx, error) {
	query, args := l.query, pgx.NamedArgs{"organization": c.key.Organization(), "privilege": c.key.Privilege()}
	if query == "" {
		query, args = lockRow, pgx.NamedArgs{"key": c.key.String()}
	}
	rows := 0
	batch := &pgx.Batch{}
	batch.BeginTx(readCommitted)
	batch.Queue(rememberTimeout)
	queueRow(batch, c, rowQuery{query, args, &rows})
	results := c.conn.SendBatch(ctx, batch)
	tx := results.Tx()
	if err := results.Close(); err != nil {
		return tx, err
	}
	if rows == 0 && l.query == "" {
		batch = &pgx.Batch{}
		batch.Queue(setTimeout, milliseconds(c.wait)) // another who makes the row is waited for too
		batch.Queue(makeRow, args)
		queueRow(batch, c, rowQuery{query, args, &rows})
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return tx, err
		}
	}
	if rows != 1 {
		return tx, fmt.Errorf("%d rows for it were found, and 1 is needed", rows)
	}
	return tx, nil
}

// rowQuery is a query, and where to count its rows.
type rowQuery struct {
	sql  string
	args pgx.NamedArgs
	rows *int
}

// queueRow locks with a limit on the wait, and counts what it locked.
func queueRow(batch *pgx.Batch, c claim, q rowQuery) {
	batch.Queue(setTimeout, milliseconds(c.wait))
	batch.Queue(q.sql, q.args).Query(func(found pgx.Rows) error {
		for found.Next() {
			*q.rows++
		}
		return found.Err()
	})
	batch.Queue(restoreTimeout)
}
