package usage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// endPatience bounds a rollback or a commit, which must not be cut short by a caller who
// has gone.
const endPatience = 10 * time.Second

// unfinished is what went wrong before a commit was sent: nothing was written.
type unfinished struct{ error }

func (u unfinished) Unwrap() error { return u.error }

// transact runs do in a transaction of its own. READ COMMITTED is stated, because the
// database's default may be another one, in which a guarded statement fails
// wherever it would have waited.
//
// An error of do, or of the database before the commit, is unfinished. After one of
// the commit itself nobody knows.
func (c *Counters) transact(ctx context.Context, do func(pgx.Tx) error) error {
	tx, err := c.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return unfinished{fmt.Errorf("begin: %w", err)}
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer cancel()
	defer tx.Rollback(end)
	if err := do(tx); err != nil {
		return unfinished{err}
	}
	if err := tx.Commit(end); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// unavailable turns what kept a transaction of our own from being decided into
// ErrUnavailable. What a caller can act on stays as it is, and so does a commit whose
// outcome nobody knows.
func unavailable(err error) error {
	if !errors.As(err, new(unfinished)) || errors.Is(err, ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
