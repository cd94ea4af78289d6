package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// DefaultCommitTimeout is how long a commit or a rollback may take.
	DefaultCommitTimeout = 5 * time.Second
	// holdGrace is how much later than lock_timeout this side gives up: it would have to
	// close the connection, which lock_timeout leaves in use.
	holdGrace = time.Second
)

// Codes of Postgres.
const (
	codeLockTimeout   = "55P03"
	codeCanceled      = "57014"
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	// codeUnknownCompletion says itself that the outcome is unknown.
	codeUnknownCompletion = "40003"
	// codeOtherTransaction is the division by zero of commitHeld.
	codeOtherTransaction = "22012"
	severityError        = "ERROR"
)

// PostgresOptions are the settings of the locks in Postgres. Each may be left out.
type PostgresOptions struct {
	// Database names the database in Domain, the name in the pool's address by default.
	// Set it where two databases of one program have one name.
	Database string
	// LockTimeout is how long Run waits for others, in this process and in the
	// database together. It should be shorter than statement_timeout, that
	// shorter than the deadline of the request, and that shorter than the AckWait of the
	// message that the request came with.
	LockTimeout time.Duration
	// CommitTimeout bounds the commit, and the rollback. The request's own end stops neither.
	CommitTimeout time.Duration
}

// transactions are what the locks in Postgres have in common: a transaction for each
// guard, and in front of the connection a lock of this process. So of those
// who wait for one key only one holds a connection, however many they are.
type transactions struct {
	pool    *pgxpool.Pool
	options PostgresOptions
	domain  string
	keys    keyed
}

func newTransactions(pool *pgxpool.Pool, o PostgresOptions) *transactions {
	if o.Database == "" {
		o.Database = pool.Config().ConnConfig.Database
	}
	if o.LockTimeout <= 0 {
		o.LockTimeout = DefaultLockTimeout
	}
	if o.CommitTimeout <= 0 {
		o.CommitTimeout = DefaultCommitTimeout
	}
	return &transactions{pool: pool, options: o, domain: "database:" + o.Database}
}

// Domain is "database:" and the database's name.
func (p *transactions) Domain() string { return p.domain }

// hold is how a lock begins a transaction that owns a key.
type hold func(ctx context.Context, c claim) (pgx.Tx, error)

// claim is a connection on which a key is to be held.
type claim struct {
	conn *pgx.Conn
	key  Key
	// wait is what lock_timeout is to be.
	wait time.Duration
}

// body is what a lock runs.
type body func(ctx context.Context, tx pgx.Tx) error

// queue waits for the key in this process. The rest of the time is for the database.
func (p *transactions) queue(ctx context.Context, key Key) (release func(), deadline time.Time, err error) {
	deadline = time.Now().Add(p.options.LockTimeout)
	release, err = wait(ctx, &p.keys, waiting{key: key, domain: p.domain, patience: p.options.LockTimeout})
	return release, deadline, err
}

// transact runs fn in a transaction that holds the key.
func (p *transactions) transact(ctx context.Context, a attempt) error {
	asking, cancel := context.WithDeadline(ctx, a.deadline)
	conn, err := p.pool.Acquire(asking)
	cancel()
	if err != nil {
		return p.notHeld(ctx, a, fmt.Errorf("get a connection: %w", err))
	}
	defer conn.Release()
	tx, err := p.begin(ctx, conn.Conn(), a)
	open := true
	defer func() {
		// Also when fn panics or ends the goroutine.
		if open && tx != nil {
			p.rollback(ctx, tx)
		}
	}()
	if err != nil {
		return p.notHeld(ctx, a, err)
	}
	if err := a.fn(ctx, owned{tx}); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("not committed, because the request ended before: %w", ended(ctx))
	}
	open = false
	return p.commit(ctx, tx)
}

// attempt is one transaction.
type attempt struct {
	key      Key
	deadline time.Time
	hold     hold
	fn       body
}

func (p *transactions) begin(ctx context.Context, conn *pgx.Conn, a attempt) (pgx.Tx, error) {
	holding, cancel := context.WithDeadline(ctx, a.deadline.Add(holdGrace))
	defer cancel()
	// 0 would mean to wait for ever.
	left := max(time.Until(a.deadline), time.Millisecond)
	return a.hold(holding, claim{conn: conn, key: a.key, wait: left})
}

// notHeld says why there is no lock.
func (p *transactions) notHeld(ctx context.Context, a attempt, err error) error {
	var refused *pgconn.PgError
	isTimeout := errors.As(err, &refused) && (refused.Code == codeLockTimeout || refused.Code == codeCanceled)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("take lock %s: %w", a.key, ended(ctx))
	case isTimeout:
		waited := p.options.LockTimeout - time.Until(a.deadline)
		return &LockTimeout{Key: a.key.String(), Domain: p.domain, Waited: waited, Cause: err}
	}
	return &LockUnavailable{Key: a.key.String(), Domain: p.domain, Cause: err}
}

// commit is detached from the request: cut off in the middle, it would have no outcome.
func (p *transactions) commit(ctx context.Context, tx pgx.Tx) error {
	switch tx.Conn().PgConn().TxStatus() {
	case idle:
		p.rollback(ctx, tx) // so that pgx knows too
		return ErrEnded
	case failed:
		p.rollback(ctx, tx)
		return ErrSwallowed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.options.CommitTimeout)
	defer cancel()
	err := tx.Commit(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return fmt.Errorf("%w: %w", ErrSwallowed, err)
	case pgconn.SafeToRetry(err):
		// Nothing was sent, and a server rolls back what it hears no more of.
		return fmt.Errorf("not committed, because the connection was closed or left busy before: %w", err)
	case answered(err, codeOtherTransaction) && tx.Conn().PgConn().TxStatus() == failed:
		// A trigger that divides by zero at the commit ends the transaction, and is another case.
		return fmt.Errorf("%w and began another: %w", ErrEnded, err)
	case answered(err):
		return fmt.Errorf("commit the guard's transaction: %w", err)
	}
	return &OutcomeUnknown{Domain: p.domain, Cause: err}
}

// The states of a connection without a transaction, and with one that can only roll back.
const (
	idle   = 'I'
	failed = 'E'
)

// answered reports whether the server itself said that a commit failed, with one of the
// codes if any are given. What ends the connection, FATAL, may have come after the
// commit was done.
func answered(err error, codes ...string) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.SeverityUnlocalized == severityError && refused.Code != codeUnknownCompletion &&
		(len(codes) == 0 || slices.Contains(codes, refused.Code))
}

func (p *transactions) rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.options.CommitTimeout)
	defer cancel()
	// A connection on which this fails is closed, and its server rolls back by itself.
	_ = tx.Rollback(ctx)
}

// conflict reports an error after which the same transaction may succeed.
func conflict(err error) bool {
	var unknown *OutcomeUnknown
	var refused *pgconn.PgError
	return !errors.As(err, &unknown) && errors.As(err, &refused) &&
		(refused.Code == codeSerialization || refused.Code == codeDeadlock)
}

// owned is a transaction that only its lock may end.
type owned struct{ pgx.Tx }

// Commit refuses.
func (owned) Commit(context.Context) error { return errNotYours }

// Rollback refuses: an error from act rolls back.
func (owned) Rollback(context.Context) error { return errNotYours }

var errNotYours = errors.New("the guard commits its transaction, and rolls it back when act returns an error")
