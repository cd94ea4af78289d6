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
	l := &Leadership{conn: conn}
	if _, err := conn.Exec(ctx, keepAlive); err != nil {
		l.Release(ctx)
		return nil, fmt.Errorf("lead the ledger: %w", err)
	}
	return l, nil
}

// keepAlive has Postgres find out within half a minute that a leader's machine is
// gone. Until then its lock stands, by the system's default for two hours.
const keepAlive = `select set_config('tcp_keepalives_idle', '10', false),
	set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '4', false)`

// Check reports an error when the connection, and with it the leadership, is lost.
func (l *Leadership) Check(ctx context.Context) error {
	if err := l.conn.Ping(ctx); err != nil {
		return fmt.Errorf("lead the ledger: connection lost: %w", err)
	}
	return nil
}

// releaseWait bounds how long a Release waits for a server that does not answer.
const releaseWait = 2 * time.Second

// Release gives the leadership up and closes its connection, whose settings are
// for no other use. One that cannot be unlocked is unlocked by that.
func (l *Leadership) Release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWait)
	defer cancel()
	_, _ = l.conn.Exec(ctx, `select pg_advisory_unlock($1)`, leaderLock)
	_ = l.conn.Hijack().Close(ctx)
}
