package schematest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestEachTestHasAMigratedDatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"one", "two", "three"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := schematest.Postgres(t)
			if _, err := pool.Exec(t.Context(), "INSERT INTO workspaces (id) VALUES ('ws')"); err != nil {
				t.Fatalf("insert into a fresh database: %v", err)
			}
			session, err := pgx.Connect(t.Context(), schematest.PostgresURL(t))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = session.Close(t.Context()) }()
			var rows int
			if err := session.QueryRow(t.Context(), "SELECT count(*) FROM workspaces").Scan(&rows); err != nil {
				t.Fatal(err)
			}
			if rows != 1 {
				t.Errorf("PostgresURL leads to a database with %d workspaces, want the one inserted through Postgres", rows)
			}
		})
	}
}
