package guardtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/enforcement/guard/guardtest"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// inTransaction calls fn in a transaction of the default isolation, as many do.
func inTransaction(pool *pgxpool.Pool) func(context.Context, func(context.Context, pgx.Tx) error) error {
	return func(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return fn(ctx, tx) })
	}
}

// broken is a lock as somebody might write it.
type broken struct {
	pool    *pgxpool.Pool
	options pgx.TxOptions
	// lock is the first statement, with the arguments of the key.
	lock string
	args func(guard.Key) []any
}

func (broken) Domain() string { return "database:broken" }

func (b broken) Run(ctx context.Context, key guard.Key, fn func(context.Context, pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, b.pool, b.options, func(tx pgx.Tx) error {
		if b.lock != "" {
			if _, err := tx.Exec(ctx, b.lock, b.args(key)...); err != nil {
				return err
			}
		}
		return fn(ctx, tx)
	})
}

const advisory = `SELECT pg_advisory_xact_lock(hashtextextended('oe:' || $1 || ':' || $2, 0))`

func parts(k guard.Key) []any { return []any{k.Organization(), k.Privilege()} }

// Each of these allows more than the limit, or fewer. The suite has to say so.
func TestBrokenLocksAreFound(t *testing.T) {
	t.Parallel()
	tests := map[string]broken{
		"no lock": {},
		"the database's default isolation is REPEATABLE READ": {
			options: pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, lock: advisory, args: parts,
		},
		"an organization that is NULL": {
			lock: advisory, args: func(k guard.Key) []any { return []any{nil, k.Privilege()} },
		},
		"a row that does not exist": {
			lock: `SELECT 1 FROM headroom_guard_keys WHERE key = $1 FOR UPDATE`,
			args: func(k guard.Key) []any { return []any{k.String()} },
		},
		"SERIALIZABLE without a retry": {options: pgx.TxOptions{IsoLevel: pgx.Serializable}},
	}
	for name, b := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			finds(t, harness(t, func(pool *pgxpool.Pool, _ guard.PostgresOptions) (guard.Lock[pgx.Tx], error) {
				b.pool = pool
				return b, nil
			}, schematest.PostgresURL(t)))
		})
	}
}

// The snapshot of a statement is from before the wait in it.
func TestALockInTheStatementThatCountsIsFound(t *testing.T) {
	t.Parallel()
	h := harness(t, func(pool *pgxpool.Pool, _ guard.PostgresOptions) (guard.Lock[pgx.Tx], error) {
		return broken{pool: pool}, nil
	}, schematest.PostgresURL(t))
	open := h.Open
	h.Open = func(t testing.TB, s guardtest.Settings) guardtest.Bench[pgx.Tx] {
		b := open(t, s)
		b.Count = func(ctx context.Context, tx pgx.Tx, counter string) (n int64, err error) {
			err = tx.QueryRow(ctx, `WITH held AS MATERIALIZED (SELECT pg_advisory_xact_lock(hashtextextended(@counter, 0)))
				SELECT count(*) FROM held, items WHERE counter = @counter`, pgx.NamedArgs{"counter": counter}).Scan(&n)
			return n, err
		}
		return b
	}
	finds(t, h)
}

func TestNoLockInTheProcessIsFound(t *testing.T) {
	t.Parallel()
	finds(t, inMemory(func(m *memory, _ time.Duration) guard.Lock[*memory] { return free{m} }))
}

// free is a lock that locks nothing.
type free struct{ m *memory }

func (free) Domain() string { return "process:free" }

func (f free) Run(ctx context.Context, _ guard.Key, fn func(context.Context, *memory) error) error {
	return fn(ctx, f.m)
}

// A lock that is one process's is found as soon as there are two.
func TestALockOfOneProcessIsFound(t *testing.T) {
	t.Parallel()
	h := harness(t, inProcess, schematest.PostgresURL(t))
	h.Process = process("in process")
	findings := guardtest.Findings(t, h, "5.2.2 across two processes")
	if len(findings) == 0 {
		t.Error("the suite finds nothing wrong with a lock of one process in two")
	}
}

func finds[Tx any](t *testing.T, h guardtest.Harness[Tx]) {
	t.Helper()
	findings := guardtest.Findings(t, h, "5.2.2")
	if len(findings) == 0 {
		t.Fatal("the suite finds nothing wrong")
	}
	t.Logf("%d findings, such as: %s", len(findings), findings[0])
}

// around is a lock that does something wrong around a good one.
type around struct {
	guard.Lock[pgx.Tx]
	run func(guard.Lock[pgx.Tx], context.Context, guard.Key, runs) error
}

type runs = func(context.Context, pgx.Tx) error

func (a around) Run(ctx context.Context, key guard.Key, fn func(context.Context, pgx.Tx) error) error {
	return a.run(a.Lock, ctx, key, fn)
}

// nameless has no domain.
type nameless struct{ guard.Lock[pgx.Tx] }

func (nameless) Domain() string { return "" }

// valueless is a context that is not made of the request's.
type valueless struct{ context.Context }

func (valueless) Value(any) any { return nil }

// Each of these holds the lock well, and does something else wrong.
func TestFaultsAroundAGoodLockAreFound(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		requirement string
		run         func(guard.Lock[pgx.Tx], context.Context, guard.Key, runs) error
	}{
		"a panic becomes an error": {"5.2.4", func(l guard.Lock[pgx.Tx], ctx context.Context, key guard.Key, fn runs) (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("panic: %v", p)
				}
			}()
			return l.Run(ctx, key, fn)
		}},
		"an error is wrapped": {"5.2.4", func(l guard.Lock[pgx.Tx], ctx context.Context, key guard.Key, fn runs) error {
			if err := l.Run(ctx, key, fn); err != nil {
				return fmt.Errorf("lock: %w", err)
			}
			return nil
		}},
		"what failed is committed": {"5.3.1 nothing is stored of what failed", func(l guard.Lock[pgx.Tx], ctx context.Context, key guard.Key, fn runs) error {
			var failure error
			err := l.Run(ctx, key, func(ctx context.Context, tx pgx.Tx) error {
				failure = fn(ctx, tx)
				return nil
			})
			return errors.Join(err, failure)
		}},
		"a failed commit is success": {"a failure that act swallows is an error", func(l guard.Lock[pgx.Tx], ctx context.Context, key guard.Key, fn runs) error {
			var failure error
			_ = l.Run(ctx, key, func(ctx context.Context, tx pgx.Tx) error {
				failure = fn(ctx, tx)
				return failure
			})
			return failure
		}},
		"the privilege is not in the key": {"different keys run side by side", func(l guard.Lock[pgx.Tx], ctx context.Context, key guard.Key, fn runs) error {
			all, err := guard.NewKey(key.Organization(), "all")
			if err != nil {
				return err
			}
			return l.Run(ctx, all, fn)
		}},
		"act gets another context": {"5.3.1", func(l guard.Lock[pgx.Tx], ctx context.Context, key guard.Key, fn runs) error {
			return l.Run(ctx, key, func(ctx context.Context, tx pgx.Tx) error { return fn(valueless{ctx}, tx) }) //nolint:contextcheck // this is the fault
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := harness(t, func(pool *pgxpool.Pool, o guard.PostgresOptions) (guard.Lock[pgx.Tx], error) {
				return around{guard.NewAdvisoryLock(pool, o), tc.run}, nil
			}, schematest.PostgresURL(t))
			if len(guardtest.Findings(t, h, tc.requirement)) == 0 {
				t.Error("the suite finds nothing wrong")
			}
		})
	}
	t.Run("the domain has no name", func(t *testing.T) {
		t.Parallel()
		h := harness(t, func(pool *pgxpool.Pool, o guard.PostgresOptions) (guard.Lock[pgx.Tx], error) {
			return nameless{guard.NewAdvisoryLock(pool, o)}, nil
		}, schematest.PostgresURL(t))
		if len(guardtest.Findings(t, h, "5.3.3")) == 0 {
			t.Error("the suite finds nothing wrong")
		}
	})
}
