package devstack_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/cmd/headroom/devstack"
)

func TestPgBouncerStandsInFrontOfADatabase(t *testing.T) {
	t.Parallel()
	cluster, err := devstack.StartPostgres(t.Context(), devstack.PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopAtEnd(t, cluster) })
	dir := enterable(t)
	pooler, err := devstack.StartPgBouncer(t.Context(), devstack.PgBouncerOptions{Postgres: cluster.URL(), PoolSize: 1, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopAtEnd(t, pooler) })
	assertUnprivileged(t, pooler.PID())
	// Two sessions share the one connection, each transaction of its own.
	var backends [2]int
	for i := range backends {
		session, err := pgx.Connect(t.Context(), pooler.URL())
		if err != nil {
			t.Fatal(err)
		}
		err = session.QueryRow(t.Context(), "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&backends[i])
		if err := errors.Join(err, session.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	if backends[0] != backends[1] {
		t.Errorf("two sessions have the backends %v, want that they share one", backends)
	}
	if err := pooler.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	assertNothingLeft(t, dir, []alive{{pid: strconv.Itoa(pooler.PID())}})
}
