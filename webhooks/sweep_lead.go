package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// The advisory locks of whoever sweeps and of whoever syncs: "hr-sweep" and "hr-osync"
// in ASCII.
const (
	sweepLock int64 = 0x68722d7377656570
	syncLock  int64 = 0x68722d6f73796e63
)

// ErrBusy means that another process is at it. What it does need not be done twice.
var ErrBusy = errors.New("another process is at it")

// unlockPatience bounds how long a server that does not answer is waited for.
const unlockPatience = 2 * time.Second

// alone runs work in one process of all that share the database, or returns ErrBusy. The
// lock is that of a session of its own and ends with it, whatever ends it.
func (l *Ledger) alone(ctx context.Context, lock int64, work func(context.Context) error) error {
	session, err := pgx.ConnectConfig(ctx, l.pool.Config().ConnConfig.Copy())
	if err != nil {
		return fmt.Errorf("connect to be the only one: %w", err)
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockPatience)
		defer cancel()
		// The server takes a moment to end a session, and the next one may not wait.
		_, _ = session.Exec(ending, `SELECT pg_advisory_unlock($1)`, lock)
		_ = session.Close(ending)
	}()
	var first bool
	if err := session.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, lock).Scan(&first); err != nil {
		return fmt.Errorf("find out whether another process is at it: %w", err)
	}
	if !first {
		return ErrBusy
	}
	return work(ctx)
}
