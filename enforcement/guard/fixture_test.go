package guard_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

func TestMain(m *testing.M) { schematest.Main(m) }

// plan is a provider with one answer.
type plan struct {
	mu     sync.Mutex
	answer guard.Resolution
	err    error
	asked  int
	// block makes the provider wait for the end of the context, from this question on.
	block int
}

func limited(n int64) *plan {
	return &plan{answer: guard.Resolution{Kind: guard.KindLimit, Limit: schemas.LimitOf(n), PlanKey: "pro", Source: guard.SourcePlan}}
}

func (p *plan) Resolve(ctx context.Context, _, _ string) (guard.Resolution, error) {
	p.mu.Lock()
	p.asked++
	blocks := p.block > 0 && p.asked >= p.block
	answer, err := p.answer, p.err
	p.mu.Unlock()
	if blocks {
		<-ctx.Done()
		return guard.Resolution{}, ctx.Err()
	}
	return answer, err
}

// request is for one of the organization's projects.
func request(organization string) guard.Request {
	return guard.Request{Organization: organization, Privilege: "projects", Requested: 1}
}

// database is a test's database with a table of projects.
func database(t testing.TB) string {
	t.Helper()
	if _, err := schematest.Postgres(t).Exec(t.Context(), `CREATE TABLE organizations (id text PRIMARY KEY);
		CREATE TABLE projects (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, organization text NOT NULL);
		CREATE INDEX ON projects (organization)`); err != nil {
		t.Fatal(err)
	}
	return schematest.PostgresURL(t)
}

// projects counts and inserts rows of one organization; in is called in act, after the insert.
func projects(organization string, in func(ctx context.Context, tx pgx.Tx) error) guard.Callbacks[int64, pgx.Tx] {
	return guard.Callbacks[int64, pgx.Tx]{
		Count: guard.Total(func(ctx context.Context, tx pgx.Tx) (n int64, err error) {
			err = tx.QueryRow(ctx, `SELECT count(*) FROM projects WHERE organization = @organization`,
				pgx.NamedArgs{"organization": organization}).Scan(&n)
			return n, err
		}),
		Act: func(ctx context.Context, tx pgx.Tx) (id int64, err error) {
			err = tx.QueryRow(ctx, `INSERT INTO projects (organization) VALUES (@organization) RETURNING id`,
				pgx.NamedArgs{"organization": organization}).Scan(&id)
			if err == nil && in != nil {
				err = in(ctx, tx)
			}
			return id, err
		},
	}
}

func newClient[Tx any](t testing.TB, p guard.Provider, lock guard.Lock[Tx]) *guard.Client[Tx] {
	t.Helper()
	client, err := guard.New(guard.Options[Tx]{Provider: p, Lock: lock})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// stored is how many projects everybody sees.
func stored(t testing.TB, organization string) (n int64) {
	t.Helper()
	if err := schematest.Postgres(t).QueryRow(t.Context(), `SELECT count(*) FROM projects WHERE organization = @organization`,
		pgx.NamedArgs{"organization": organization}).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// eventually polls the database, which tells nobody what its backends do.
func eventually(t testing.TB, query, what string, args ...any) {
	t.Helper()
	deadline, ticker := time.After(patience), time.NewTicker(5*time.Millisecond)
	defer ticker.Stop()
	for {
		var holds bool
		if err := schematest.Postgres(t).QueryRow(t.Context(), query, args...).Scan(&holds); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if holds {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("%s does not come about", what)
		}
	}
}

// isWaiting and isAlone ask whether somebody waits for an advisory lock of this database.
const (
	isWaiting = `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`
	isAlone = `SELECT NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`
)

// elsewhere holds an organization's key on a connection of its own, as another process would.
func elsewhere(t testing.TB, organization string) (release func()) {
	t.Helper()
	session, err := pgx.Connect(t.Context(), schematest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	release = func() { once.Do(func() { _ = session.Close(context.WithoutCancel(t.Context())) }) }
	t.Cleanup(release)
	if _, err := session.Exec(t.Context(), `SELECT pg_advisory_lock(hashtextextended('oe:' || $1 || ':' || $2, 0))`,
		organization, "projects"); err != nil {
		t.Fatal(err)
	}
	return release
}

// await is what comes from the channel, in time.
func await[V any](t testing.TB, from <-chan V, what string) V {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(patience):
		t.Fatalf("%s does not come", what)
		panic("unreachable")
	}
}

// starts runs a guard beside the test.
func starts(ctx context.Context, client *guard.Client[pgx.Tx], organization string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, _, err := guard.Guard(ctx, client, request(organization), projects(organization, nil))
		done <- err
	}()
	return done
}
