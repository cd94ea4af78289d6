package guard

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// readCommitted is said aloud, because the default can be changed for a database or a role:
// a snapshot from before the wait does not see what the last holder stored.
var readCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite, CommitQuery: commitHeld}

// commitHeld commits the transaction in which the lock was taken, and no other: in one that
// act began in its place the setting of rememberTimeout is empty, and the division fails.
// Without arguments both statements are one message in every mode of pgx.
const commitHeld = `SELECT 1 / (coalesce(current_setting('headroom.lock_timeout', true), '') <> '')::integer; COMMIT`

// How long to wait holds for the lock alone: what act waits for is not its business. What
// was set before comes back, and nothing stays after the transaction.
const (
	rememberTimeout = `SELECT set_config('headroom.lock_timeout', current_setting('lock_timeout'), true)`
	setTimeout      = `SELECT set_config('lock_timeout', $1, true)`
	restoreTimeout  = `SELECT set_config('lock_timeout', current_setting('headroom.lock_timeout'), true)`
)

// lockKey waits for the key. It is a statement of its own, and count is another: within one,
// the snapshot is from before the wait.
const lockKey = `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`

// AdvisoryLock serialises the guards of all processes on one database. It needs no table
// and no row; it protects nothing from those who write without it.
type AdvisoryLock struct{ *transactions }

// NewAdvisoryLock makes a lock on the pool's database. The pool must lead to the primary:
// a standby refuses. Guards of one process should share one lock, so that those
// who wait hold no connections.
func NewAdvisoryLock(pool *pgxpool.Pool, o PostgresOptions) *AdvisoryLock {
	return &AdvisoryLock{newTransactions(pool, o)}
}

// Run is that of Lock: lock, count and act in one transaction.
func (l *AdvisoryLock) Run(ctx context.Context, key Key, fn func(ctx context.Context, tx pgx.Tx) error) error {
	release, deadline, err := l.queue(ctx, key)
	if err != nil {
		return err
	}
	defer release()
	return l.transact(ctx, attempt{key: key, deadline: deadline, hold: holdAdvisory, fn: fn})
}

// holdAdvisory is one round trip of separate statements.
func holdAdvisory(ctx context.Context, c claim) (pgx.Tx, error) {
	batch := &pgx.Batch{}
	batch.BeginTx(readCommitted)
	batch.Queue(rememberTimeout)
	batch.Queue(setTimeout, milliseconds(c.wait))
	batch.Queue(lockKey, c.key.String())
	batch.Queue(restoreTimeout)
	results := c.conn.SendBatch(ctx, batch)
	tx := results.Tx()
	return tx, results.Close()
}

func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(d.Milliseconds(), 1), 10)
}
