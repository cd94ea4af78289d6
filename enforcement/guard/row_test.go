package guard_test

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// databaseLocks are the locks that wait in the database.
var databaseLocks = map[string]func(testing.TB, *pgxpool.Pool) guard.Lock[pgx.Tx]{
	"advisory": func(_ testing.TB, pool *pgxpool.Pool) guard.Lock[pgx.Tx] {
		return guard.NewAdvisoryLock(pool, guard.PostgresOptions{})
	},
	"row": func(t testing.TB, pool *pgxpool.Pool) guard.Lock[pgx.Tx] { return rowLock(t, pool, "") },
	"serializable": func(_ testing.TB, pool *pgxpool.Pool) guard.Lock[pgx.Tx] {
		return guard.NewSerializableLock(pool, guard.PostgresOptions{})
	},
}

const organizationRow = `SELECT 1 FROM organizations WHERE id = @organization FOR NO KEY UPDATE`

func rowLock(t testing.TB, pool *pgxpool.Pool, query string) *guard.RowLock {
	t.Helper()
	lock, err := guard.NewRowLock(pool, guard.RowOptions{Query: query})
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	return lock
}

func TestARowOfTheApplicationsOwn(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t, database(t), 8)
	client := newClient[pgx.Tx](t, limited(5), rowLock(t, pool, organizationRow))
	if err := await(t, starts(t.Context(), client, "org"), "a refusal"); !is[*guard.LockUnavailable](err) {
		t.Fatalf("without the row: %v, want *LockUnavailable, because nothing was locked", err)
	}
	if _, err := pool.Exec(t.Context(), "INSERT INTO organizations VALUES ('org')"); err != nil {
		t.Fatal(err)
	}
	running := make([]<-chan error, 20)
	for i := range running {
		running[i] = starts(t.Context(), client, "org")
	}
	for _, done := range running {
		if err := await(t, done, "a guard"); err != nil && !is[*guard.EntitlementLimitExceeded](err) {
			t.Errorf("a guard gives %v", err)
		}
	}
	if got := stored(t, "org"); got != 5 {
		t.Errorf("%d projects are stored, want 5", got)
	}
}

// FOR UPDATE would let them wait.
func TestTheRowLockDoesNotHinderWhoRefersToTheRow(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t, database(t), 2)
	if _, err := pool.Exec(t.Context(), `INSERT INTO organizations VALUES ('org');
		CREATE TABLE members (organization text REFERENCES organizations)`); err != nil {
		t.Fatal(err)
	}
	client := newClient[pgx.Tx](t, limited(5), rowLock(t, pool, organizationRow))
	_, _, err := guard.Guard(t.Context(), client, request("org"), projects("org", func(ctx context.Context, _ pgx.Tx) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		_, err := pool.Exec(ctx, "INSERT INTO members VALUES ('org')")
		return err
	}))
	if err != nil {
		t.Errorf("an insert that refers to the row gives %v while it is held", err)
	}
}

func TestAQueryThatLocksNothingIsRefused(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t, "postgres://127.0.0.1:1/never", 1)
	for query, works := range map[string]bool{
		"SELECT 1 FROM organizations WHERE id = @organization":                      false,
		"SELECT 1 FROM organizations WHERE id = @organization FOR SHARE":            false,
		"SELECT 1 FROM organizations WHERE id = @organization for no  key\n update": true,
		organizationRow: true,
		"SELECT 1 FROM organizations WHERE id = @organization FOR UPDATE NOWAIT": true,
	} {
		if _, err := guard.NewRowLock(pool, guard.RowOptions{Query: query}); (err == nil) != works {
			t.Errorf("%s: %v, want it to do: %t", query, err, works)
		}
	}
}

func TestTheTableOfKeys(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t, database(t), 8)
	lock, err := guard.NewRowLock(pool, guard.RowOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client := newClient[pgx.Tx](t, limited(5), lock)
	if err := await(t, starts(t.Context(), client, "org"), "a refusal"); !is[*guard.LockUnavailable](err) {
		t.Errorf("without the table: %v, want *LockUnavailable", err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := lock.Setup(t.Context()); err != nil {
				t.Errorf("one of eight at once: %v", err)
			}
		})
	}
	all.Wait()
	if err := await(t, starts(t.Context(), client, "org"), "a guard"); err != nil {
		t.Errorf("with the table: %v", err)
	}
}
