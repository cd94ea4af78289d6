package guard

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	firstRetry = 2 * time.Millisecond
	lastRetry  = 100 * time.Millisecond
	mostTries  = 50
)

// SerializableLock lets Postgres find out afterwards that two guards were in each other's
// way: one of them is rolled back and done again. It locks nothing beforehand, so that other
// writers are protected from too, if they are SERIALIZABLE as well.
//
// Count and act run again after a conflict: they must do nothing outside of tx.
type SerializableLock struct{ *transactions }

// NewSerializableLock makes a lock on the pool's database. Retries end after
// LockTimeout, or after 50 of them; then the error is a *LockTimeout with the last conflict.
func NewSerializableLock(pool *pgxpool.Pool, o PostgresOptions) *SerializableLock {
	return &SerializableLock{newTransactions(pool, o)}
}

// Run is that of Lock: count and act in one SERIALIZABLE transaction, until one commits.
func (l *SerializableLock) Run(ctx context.Context, key Key, fn func(ctx context.Context, tx pgx.Tx) error) error {
	release, deadline, err := l.queue(ctx, key)
	if err != nil {
		return err
	}
	defer release()
	tries := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstRetry), backoff.WithMaxInterval(lastRetry),
		backoff.WithMaxElapsedTime(max(time.Until(deadline), time.Millisecond)))
	err = backoff.Retry(func() error {
		err := l.transact(ctx, attempt{key: key, deadline: deadline, hold: holdSerializable, fn: fn})
		if err != nil && !conflict(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(backoff.WithMaxRetries(tries, mostTries), ctx))
	if conflict(err) {
		waited := l.options.LockTimeout - time.Until(deadline)
		return &LockTimeout{Key: key.String(), Domain: l.domain, Waited: waited, Cause: err}
	}
	return err
}

var serializable = pgx.TxOptions{IsoLevel: pgx.Serializable, AccessMode: pgx.ReadWrite, CommitQuery: commitHeld}

// holdSerializable sets nothing but what commitHeld looks for.
func holdSerializable(ctx context.Context, c claim) (pgx.Tx, error) {
	batch := &pgx.Batch{}
	batch.BeginTx(serializable)
	batch.Queue(rememberTimeout)
	results := c.conn.SendBatch(ctx, batch)
	tx := results.Tx()
	return tx, results.Close()
}
