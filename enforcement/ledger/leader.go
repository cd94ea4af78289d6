package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// leaderLock is the advisory lock of the ledger's leader: "hr-ledgr" in ASCII.
const leaderLock int64 = 0x68722d6c65646772

// Leadership is held by one process of all that share a database, for as long as
// its connection lives. It occupies one connection of the pool.
type Leadership struct {
	conn *pgxpool.Conn
}

// TryLead takes the leadership, or returns ErrNotLeader at once when another
// process has it. The holder calls Check now and then and Release at the end.
func (s *Store) TryLead(ctx context.Context) (*Leadership, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("lead the ledger: %w", err)
	}
	var leads bool
	if err := conn.QueryRow(ctx, `select pg_try_advisory_lock($1)`, leaderLock).Scan(&leads); err != nil {
		conn.Release()
		return nil, fmt.Errorf("lead the ledger: %w", err)
	}
	if !leads {
		conn.Release()
		return nil, ErrNotLeader
	}
	return &Leadership{conn: conn}, nil
}

// Check reports an error when the connection, and with it the leadership, is lost.
func (l *Leadership) Check(ctx context.Context) error {
	if err := l.conn.Ping(ctx); err != nil {
		return fmt.Errorf("lead the ledger: connection lost: %w", err)
	}
	return nil
}

// releaseWait bounds how long a Release waits for a server that does not answer.
const releaseWait = 2 * time.Second

// Release gives the leadership up. A connection that cannot be unlocked is
// closed, which unlocks it.
func (l *Leadership) Release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWait)
	defer cancel()
	if _, err := l.conn.Exec(ctx, `select pg_advisory_unlock($1)`, leaderLock); err != nil {
		_ = l.conn.Hijack().Close(ctx)
		return
	}
	l.conn.Release()
}
