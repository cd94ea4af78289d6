package schematest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestPgBouncerLeadsToTheTestsDatabase(t *testing.T) {
	t.Parallel()
	if _, err := schematest.Postgres(t).Exec(t.Context(), "INSERT INTO workspaces (id) VALUES ('ws')"); err != nil {
		t.Fatal(err)
	}
	through := schematest.WithExecMode(t, schematest.PgBouncer(t, schematest.PostgresURL(t)), "exec")
	session, err := pgx.Connect(t.Context(), through)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close(t.Context()) }()
	var rows int
	if err := session.QueryRow(t.Context(), "SELECT count(*) FROM workspaces").Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d workspaces, %v; want the one inserted beside the pooler", rows, err)
	}
	if through == schematest.PostgresURL(t) {
		t.Error("the address does not lead through the pooler")
	}
}
