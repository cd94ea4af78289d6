package guard_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestTheAdvisoryLockIsThatOfTheSpecification(t *testing.T) {
	t.Parallel()
	t.Run("5.4", holdsTheLockOfTheSpecification)
}

// One transaction, READ COMMITTED whatever the default is, that holds exactly the lock that
// others with the specification's text hold.
func holdsTheLockOfTheSpecification(t *testing.T) {
	t.Parallel()
	address := database(t)
	if _, err := schematest.Postgres(t).Exec(t.Context(), `DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = ''repeatable read''', current_database());
		EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database());
		END $$`); err != nil {
		t.Fatal(err)
	}
	pool := schematest.Pool(t, address, 2)
	client := newClient(t, limited(5), guard.NewAdvisoryLock(pool, guard.PostgresOptions{}))
	_, details, err := guard.Guard(t.Context(), client, request("org"), projects("org", func(ctx context.Context, tx pgx.Tx) error {
		var isolation string
		var same bool
		err := tx.QueryRow(ctx, `SELECT current_setting('transaction_isolation'), EXISTS (
			SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted AND objsubid = 1
			AND classid::bigint << 32 | objid::bigint = hashtextextended('oe:' || 'org' || ':' || 'projects', 0))`).Scan(&isolation, &same)
		if isolation != "read committed" || !same {
			t.Errorf("act runs in %q with the specification's lock: %t", isolation, same)
		}
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	if want := "database:" + pool.Config().ConnConfig.Database; details.Domain != want {
		t.Errorf("the domain is %q, want %q", details.Domain, want)
	}
}

func TestALockTimeoutLeavesTheConnectionInUse(t *testing.T) {
	t.Parallel()
	address := database(t)
	release := elsewhere(t, "org")
	pool := schematest.Pool(t, address, 1)
	client := newClient(t, limited(5), guard.NewAdvisoryLock(pool, guard.PostgresOptions{LockTimeout: 200 * time.Millisecond}))
	backend := func() (pid int) {
		if err := pool.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		return pid
	}
	before := backend()
	var late *guard.LockTimeout
	if err := await(t, starts(t.Context(), client, "org"), "a lock timeout"); !errors.As(err, &late) || late.Cause == nil {
		t.Fatalf("a key that is held elsewhere gives %v, want *LockTimeout with what Postgres said", err)
	}
	if late.Waited < 150*time.Millisecond || late.Waited > patience/2 {
		t.Errorf("it waited %s, want about 200ms", late.Waited)
	}
	if after := backend(); after != before {
		t.Errorf("the connection was replaced: backend %d became %d", before, after)
	}
	release()
	if err := await(t, starts(t.Context(), client, "org"), "a guard"); err != nil {
		t.Errorf("the next guard gives %v", err)
	}
}

func TestLockTimeoutIsNobodyElsesSetting(t *testing.T) {
	t.Parallel()
	for name, lock := range databaseLocks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := schematest.Pool(t, database(t), 1)
			// The application's own, set once for the session.
			if _, err := pool.Exec(t.Context(), "SET lock_timeout = '7s'"); err != nil {
				t.Fatal(err)
			}
			setting := func(q interface {
				QueryRow(context.Context, string, ...any) pgx.Row
			},
			) (text string) {
				if err := q.QueryRow(t.Context(), "SHOW lock_timeout").Scan(&text); err != nil {
					t.Error(err)
				}
				return text
			}
			client := newClient(t, limited(1), lock(t, pool))
			_, _, err := guard.Guard(t.Context(), client, request("org"), projects("org", func(_ context.Context, tx pgx.Tx) error {
				if got := setting(tx); got != "7s" {
					t.Errorf("act waits for its own locks for %s, want the application's 7s", got)
				}
				return nil
			}))
			if err != nil {
				t.Fatal(err)
			}
			if got := setting(pool); got != "7s" {
				t.Errorf("who uses the connection next waits for %s, want 7s", got)
			}
			if err := await(t, starts(t.Context(), client, "org"), "a denial"); !is[*guard.EntitlementLimitExceeded](err) {
				t.Errorf("a second project of one gives %v", err)
			}
			if got := setting(pool); got != "7s" {
				t.Errorf("after a denial the connection waits for %s, want 7s", got)
			}
		})
	}
}

func TestACancelledWaitInTheDatabase(t *testing.T) {
	t.Parallel()
	address := database(t)
	release := elsewhere(t, "org")
	client := newClient(t, limited(5), guard.NewAdvisoryLock(schematest.Pool(t, address, 2), guard.PostgresOptions{LockTimeout: patience}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := starts(ctx, client, "org")
	eventually(t, isWaiting, "the wait")
	cancel()
	if err := await(t, done, "the end of the wait"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	eventually(t, isAlone, "the end of the backend's wait")
	release()
	if err := await(t, starts(t.Context(), client, "org"), "a guard"); err != nil {
		t.Errorf("the next guard gives %v", err)
	}
}

// pgx asks the server to cancel on another connection. Where that is lost, the backend
// waits on, and only lock_timeout ends it.
func TestALostCancelRequestIsBoundedByTheLockTimeout(t *testing.T) {
	t.Parallel()
	address := database(t)
	release := elsewhere(t, "org")
	lock := guard.NewAdvisoryLock(schematest.Pool(t, withoutCancels(t, address), 2), guard.PostgresOptions{LockTimeout: time.Second})
	client := newClient(t, limited(5), lock)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := starts(ctx, client, "org")
	eventually(t, isWaiting, "the wait")
	cancel()
	if err := await(t, done, "the end of the wait"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	eventually(t, isAlone, "the end of the backend's wait while the key is still held")
	release()
	if err := await(t, starts(t.Context(), client, "org"), "a guard"); err != nil {
		t.Errorf("the next guard gives %v", err)
	}
	if got := stored(t, "org"); got != 1 {
		t.Errorf("%d projects are stored, want that of the guard that was not cancelled", got)
	}
}

// Of those who wait for one key only one holds a connection.
func TestWaitersHoldNoConnections(t *testing.T) {
	t.Parallel()
	address := database(t)
	release := elsewhere(t, "hot")
	pool := schematest.Pool(t, address, 4)
	client := newClient(t, limited(5), guard.NewAdvisoryLock(pool, guard.PostgresOptions{LockTimeout: patience}))
	waiting := make([]<-chan error, 40)
	for i := range waiting {
		waiting[i] = starts(t.Context(), client, "hot")
	}
	eventually(t, isWaiting, "the wait of the first of 40")
	for range 5 {
		if err := await(t, starts(t.Context(), client, "cold"), "another organization's guard"); err != nil {
			t.Errorf("another organization's guard gives %v", err)
		}
	}
	if got := pool.Stat().AcquiredConns(); got != 1 {
		t.Errorf("%d connections are in use while 40 guards wait for one key, want 1", got)
	}
	release()
	succeeded := 0
	for _, done := range waiting {
		if err := await(t, done, "a guard that waited"); err == nil {
			succeeded++
		}
	}
	if succeeded != 5 || stored(t, "hot") != 5 {
		t.Errorf("%d of 40 succeed and %d are stored, want 5", succeeded, stored(t, "hot"))
	}
}

// A plan that is read through the guards' own pool, and has to be read while the lock is
// held: the guard would wait for its own connection.
func TestAPlanBehindThePoolOfOneConnectionDoesNotHang(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t, database(t), 1)
	p := limited(5)
	fresh := true
	client := newClient[pgx.Tx](t, reads(func(ctx context.Context) (guard.Resolution, error) {
		if !fresh {
			if _, err := pool.Exec(ctx, "SELECT 1"); err != nil {
				return guard.Resolution{}, err
			}
			fresh = true
		}
		defer func() { fresh = false }()
		return p.Resolve(ctx, "", "")
	}), guard.NewAdvisoryLock(pool, guard.PostgresOptions{}))
	if err := await(t, starts(t.Context(), client, "org"), "a refusal"); !is[*guard.ProviderUnavailable](err) {
		t.Errorf("got %v, want *ProviderUnavailable", err)
	}
	if got := stored(t, "org"); got != 0 {
		t.Errorf("%d projects are stored", got)
	}
	fresh = true
	client = newClient(t, limited(5), guard.NewAdvisoryLock(pool, guard.PostgresOptions{}))
	if err := await(t, starts(t.Context(), client, "org"), "a guard"); err != nil {
		t.Errorf("the next guard gives %v", err)
	}
}

// reads is a provider that reads something.
type reads func(context.Context) (guard.Resolution, error)

func (r reads) Resolve(ctx context.Context, _, _ string) (guard.Resolution, error) { return r(ctx) }

func TestALockThatCannotBeAskedForIsUnavailable(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t, "postgres://nobody@127.0.0.1:1/none?sslmode=disable", 1)
	client := newClient(t, limited(5), guard.NewAdvisoryLock(pool, guard.PostgresOptions{LockTimeout: time.Second}))
	if err := await(t, starts(t.Context(), client, "org"), "a refusal"); !is[*guard.LockUnavailable](err) {
		t.Errorf("got %v, want *LockUnavailable", err)
	}
	// A pool that others have used up is no wait for the key.
	busy := schematest.Pool(t, database(t), 1)
	conn, err := busy.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	client = newClient(t, limited(5), guard.NewAdvisoryLock(busy, guard.PostgresOptions{LockTimeout: 100 * time.Millisecond}))
	if err := await(t, starts(t.Context(), client, "org"), "a refusal"); !is[*guard.LockUnavailable](err) {
		t.Errorf("without a free connection: %v, want *LockUnavailable", err)
	}
}

// The default mode keeps prepared statements on a server that the next transaction does
// not meet. Guards then fail, and still never exceed the limit.
func TestTheDefaultExecModeThroughPgBouncerExceedsNothing(t *testing.T) {
	t.Parallel()
	through := schematest.Pool(t, schematest.PgBouncer(t, database(t)), 10)
	client := newClient(t, limited(5), guard.NewAdvisoryLock(through, guard.PostgresOptions{}))
	const organizations = 4 // one after the other they would all use one connection
	running := make([]<-chan error, 40)
	for i := range running {
		running[i] = starts(t.Context(), client, fmt.Sprintf("org_%d", i%organizations))
	}
	succeeded, failed := map[int]int64{}, 0
	for i, done := range running {
		switch err := await(t, done, "a guard"); {
		case err == nil:
			succeeded[i%organizations]++
		case !is[*guard.EntitlementLimitExceeded](err):
			failed++
		}
	}
	t.Logf("default exec mode through PgBouncer: %d of 40 fail", failed)
	for i := range organizations {
		if got := stored(t, fmt.Sprintf("org_%d", i)); got > 5 || got != succeeded[i] {
			t.Errorf("%d succeed and %d are stored, want at most 5, and as many", succeeded[i], got)
		}
	}
}
