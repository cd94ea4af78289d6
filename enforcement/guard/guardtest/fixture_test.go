package guardtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/enforcement/guard/guardtest"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// workVariable makes the test's binary a process of guardtest: the kind of lock, "|",
// and the database.
const workVariable = "HEADROOM_GUARDTEST_WORK"

func TestMain(m *testing.M) {
	if text, isWorker := os.LookupEnv(workVariable); isWorker {
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	schematest.Main(m)
}

func work(text string) error {
	kind, address, _ := strings.Cut(text, "|")
	ctx := context.Background()
	pool, err := open(ctx, address, 4)
	if err != nil {
		return err
	}
	defer pool.Close()
	lockOf := locks[kind]
	if kind == "in process" {
		lockOf = inProcess
	}
	lock, err := lockOf(pool, guard.PostgresOptions{LockTimeout: 20 * time.Second})
	if err != nil {
		return err
	}
	return guardtest.Work(ctx, benchOn(pool, lock), os.Stdin, os.Stdout)
}

func open(ctx context.Context, address string, connections int) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	if connections > 0 {
		config.MaxConns = int32(connections)
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// makeLock makes a lock on a pool.
type makeLock func(*pgxpool.Pool, guard.PostgresOptions) (guard.Lock[pgx.Tx], error)

// locks are those of package guard in Postgres.
var locks = map[string]makeLock{
	"advisory": func(pool *pgxpool.Pool, o guard.PostgresOptions) (guard.Lock[pgx.Tx], error) {
		return guard.NewAdvisoryLock(pool, o), nil
	},
	"row": func(pool *pgxpool.Pool, o guard.PostgresOptions) (guard.Lock[pgx.Tx], error) {
		return guard.NewRowLock(pool, guard.RowOptions{PostgresOptions: o})
	},
	"serializable": func(pool *pgxpool.Pool, o guard.PostgresOptions) (guard.Lock[pgx.Tx], error) {
		return guard.NewSerializableLock(pool, o), nil
	},
}

// inProcess is a lock of one process, around transactions.
func inProcess(pool *pgxpool.Pool, o guard.PostgresOptions) (guard.Lock[pgx.Tx], error) {
	return guard.NewProcessLock(guard.ProcessOptions[pgx.Tx]{Transact: inTransaction(pool), LockTimeout: o.LockTimeout}), nil
}

const tables = guard.RowTable + `;
	CREATE TABLE IF NOT EXISTS items (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, counter text NOT NULL);
	CREATE INDEX IF NOT EXISTS items_by_counter ON items (counter);`

const countItems = `SELECT count(*) FROM items WHERE counter = @counter`

// benchOn counts rows, as an application does.
func benchOn(pool *pgxpool.Pool, lock guard.Lock[pgx.Tx]) guardtest.Bench[pgx.Tx] {
	return guardtest.Bench[pgx.Tx]{
		Lock: lock,
		Count: func(ctx context.Context, tx pgx.Tx, counter string) (n int64, err error) {
			err = tx.QueryRow(ctx, countItems, pgx.NamedArgs{"counter": counter}).Scan(&n)
			return n, err
		},
		Add: func(ctx context.Context, tx pgx.Tx, counter string, n int64) error {
			_, err := tx.Exec(ctx, `INSERT INTO items (counter) SELECT @counter FROM generate_series(1, @n::bigint)`,
				pgx.NamedArgs{"counter": counter, "n": n})
			return err
		},
		Stored: func(ctx context.Context, counter string) (n int64, err error) {
			err = pool.QueryRow(ctx, countItems, pgx.NamedArgs{"counter": counter}).Scan(&n)
			return n, err
		},
		Fail: func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT 1/0")
			return err
		},
	}
}

// harness runs the suite on a lock in the test's database, at the address.
func harness(t *testing.T, lockOf makeLock, address string) guardtest.Harness[pgx.Tx] {
	t.Helper()
	setup, err := pgx.Connect(t.Context(), schematest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer setup.Close(t.Context())
	if _, err := setup.Exec(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	return guardtest.Harness[pgx.Tx]{
		Transactional: true,
		Open: func(t testing.TB, s guardtest.Settings) guardtest.Bench[pgx.Tx] {
			pool, err := open(t.Context(), address, s.Connections)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			lock, err := lockOf(pool, guard.PostgresOptions{LockTimeout: s.LockTimeout})
			if err != nil {
				t.Fatal(err)
			}
			b := benchOn(pool, lock)
			b.Address = address
			return b
		},
	}
}

// process starts this binary again, for a kind of lock.
func process(kind string) func(testing.TB, string) *exec.Cmd {
	return func(t testing.TB, address string) *exec.Cmd {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self) // the suite ends it, after t's context
		cmd.Env = append(os.Environ(), workVariable+"="+kind+"|"+address)
		return cmd
	}
}

// memory is a store in this process. It has no protection of its own against what the
// suite looks for, only against data races.
type memory struct {
	mu   sync.Mutex
	here map[string]int64
}

func (m *memory) bench(lock guard.Lock[*memory]) guardtest.Bench[*memory] {
	read := func(counter string) (int64, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.here[counter], nil
	}
	return guardtest.Bench[*memory]{
		Lock:   lock,
		Count:  func(_ context.Context, _ *memory, counter string) (int64, error) { return read(counter) },
		Stored: func(_ context.Context, counter string) (int64, error) { return read(counter) },
		Add: func(_ context.Context, tx *memory, counter string, n int64) error {
			if tx != m {
				return errors.New("act got another transaction than Transact gave")
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			m.here[counter] += n
			return nil
		},
	}
}

func (m *memory) transact(ctx context.Context, fn func(context.Context, *memory) error) error {
	return fn(ctx, m)
}

func inMemory(lockOf func(m *memory, patience time.Duration) guard.Lock[*memory]) guardtest.Harness[*memory] {
	return guardtest.Harness[*memory]{Open: func(_ testing.TB, s guardtest.Settings) guardtest.Bench[*memory] {
		m := &memory{here: map[string]int64{}}
		return m.bench(lockOf(m, s.LockTimeout))
	}}
}
