package schematest

import (
	"net/url"
	"testing"

	"github.com/headroomhq/headroom/cmd/headroom/devstack"
)

// PgBouncer is a pooler of the test's own, in transaction mode, in front of the database
// at the address. What it returns is the address of that database through the pooler.
func PgBouncer(t testing.TB, address string) string {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	started, err := devstack.StartPgBouncer(ctx, devstack.PgBouncerOptions{Postgres: address, Log: Logger(t)})
	if err != nil {
		t.Fatalf("no PgBouncer for the test: %v", err)
	}
	t.Cleanup(func() { stop(t, started) })
	return started.URL()
}

// WithExecMode is the address with the way in which pgx is to send queries, such
// as "exec".
func WithExecMode(t testing.TB, address, mode string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("read the address of the test's database: %v", err)
	}
	query := u.Query()
	query.Set("default_query_exec_mode", mode)
	u.RawQuery = query.Encode()
	return u.String()
}
