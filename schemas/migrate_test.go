package schemas_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// emptyDatabase is the address of a database without any table.
func emptyDatabase(t *testing.T) string {
	t.Helper()
	exec(t, schematest.PostgresURL(t), "drop schema public cascade", "create schema public")
	return schematest.PostgresURL(t)
}

func exec(t testing.TB, url string, statements ...string) {
	t.Helper()
	conn := connect(t, url)
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func TestMigrateBySeveralProcessesAtOnce(t *testing.T) {
	t.Parallel()
	url := emptyDatabase(t)
	logs := make([]bytes.Buffer, 4)
	start := make(chan struct{})
	var group errgroup.Group
	for i := range logs {
		group.Go(func() error {
			<-start
			return schemas.Migrate(t.Context(), url, slog.New(slog.NewTextHandler(&logs[i], nil)))
		})
	}
	close(start)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	applied := 0
	for i := range logs {
		applied += strings.Count(logs[i].String(), `msg="migration applied" migration=00001_`)
		if !strings.Contains(logs[i].String(), "database is up to date") {
			t.Errorf("process %d does not say that it is done: %s", i, logs[i].String())
		}
	}
	if applied != 1 {
		t.Errorf("migration 00001 was applied %d times, want once", applied)
	}
}

func TestMigrateMakesTheTablesOfTheContract(t *testing.T) {
	t.Parallel()
	rows, err := schematest.Postgres(t).Query(t.Context(), `
		select table_name::text from information_schema.tables where table_schema = 'public' order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"denials", "executions", "ledger_applied", "outbox", "period_usage", "plan_revisions",
		"subscription_changes", "subscriptions", "workspaces",
	} {
		if !strings.Contains(" "+strings.Join(got, " ")+" ", " "+want+" ") {
			t.Errorf("table %s is missing; there are %v", want, got)
		}
	}
}

func TestAMigrationThatFailsIsNamed(t *testing.T) {
	t.Parallel()
	url := emptyDatabase(t)
	exec(t, url, "create table executions (in_the_way int)")
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	err := schemas.Migrate(t.Context(), url, logger)
	if err == nil || !strings.Contains(err.Error(), "apply 00002_ledger.sql") || !strings.Contains(err.Error(), "already exists") {
		t.Fatalf("error is %v, want it to name the migration and the cause", err)
	}
	if !strings.Contains(log.String(), "migration applied") {
		t.Errorf("what was applied before is not logged: %s", log.String())
	}
	exec(t, url, "drop table executions")
	if err := schemas.Migrate(t.Context(), url, logger); err != nil {
		t.Errorf("a later call does not go on: %v", err)
	}
}

func TestMigrateSaysWhatIsWrongWithItsDatabase(t *testing.T) {
	t.Parallel()
	log := schematest.Logger(t)
	if err := schemas.Migrate(t.Context(), "postgres://%zz", log); err == nil || !strings.Contains(err.Error(), "read the postgres url") {
		t.Errorf("a broken url: %v", err)
	}
	gone := "postgres://nobody:secret@127.0.0.1:1/none?connect_timeout=5"
	if err := schemas.Migrate(t.Context(), gone, log); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a database that is away: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := schemas.Migrate(ctx, schematest.PostgresURL(t), log); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}

const (
	insertPlan      = `insert into plan_revisions (plan_key, revision) values ('pro', nextval('catalog_revision_seq'))`
	insertWorkspace = `insert into workspaces (id) values ('ws')`
	insertPeriod    = `insert into subscriptions (id, workspace_id, source, source_id, plan_key, plan_revision, snapshot, kind, period_start, period_end, billing_start, billing_end, usage_epoch)
		values (gen_random_uuid(), 'ws', 'system', 's1', 'pro', 1, '{}', 'created', $1, $2, $1, $2, 'e1')`
)

func TestAPlanRevisionNeverChanges(t *testing.T) {
	t.Parallel()
	url := schematest.PostgresURL(t)
	exec(t, url, insertPlan)
	conn := connect(t, url)
	for _, statement := range []string{
		"update plan_revisions set rank = 5", "update plan_revisions set removed = true", "delete from plan_revisions", "truncate plan_revisions cascade",
		"insert into plan_revisions (plan_key, revision) values ('pro', 1) on conflict (plan_key, revision) do update set rank = 7",
	} {
		if _, err := conn.Exec(t.Context(), statement); codeOf(err) != "23001" || !strings.Contains(err.Error(), "immutable") {
			t.Errorf("%s: %v, want that it is refused", statement, err)
		}
	}
	var rank int
	if err := conn.QueryRow(t.Context(), "select rank from plan_revisions").Scan(&rank); err != nil || rank != 0 {
		t.Errorf("rank is %d (%v), want 0", rank, err)
	}
}

func TestASubscriptionHasOneOpenPeriod(t *testing.T) {
	t.Parallel()
	url := schematest.PostgresURL(t)
	exec(t, url, insertPlan, insertWorkspace)
	conn := connect(t, url)
	november, december, january := month(11), month(12), month(13)
	if _, err := conn.Exec(t.Context(), insertPeriod, november, december); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), insertPeriod, december, january); codeOf(err) != "23505" {
		t.Errorf("a second open period: %v, want a unique violation", err)
	}
	if _, err := conn.Exec(t.Context(), "update subscriptions set closed_at = $1", december); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), insertPeriod, november, january); codeOf(err) != "23505" {
		t.Errorf("the same period again: %v, want a unique violation", err)
	}
	if _, err := conn.Exec(t.Context(), insertPeriod, january, december); codeOf(err) != "23514" {
		t.Errorf("a period that ends before it begins: %v, want a check violation", err)
	}
	if _, err := conn.Exec(t.Context(), insertPeriod, december, january); err != nil {
		t.Errorf("the next period after the first was closed: %v", err)
	}
}

func TestAPinNamesAWholeSubscription(t *testing.T) {
	t.Parallel()
	url := schematest.PostgresURL(t)
	exec(t, url, insertWorkspace)
	conn := connect(t, url)
	if _, err := conn.Exec(t.Context(), "update workspaces set pinned_source = 'stripe'"); codeOf(err) != "23514" {
		t.Errorf("a source alone: %v, want a check violation", err)
	}
	whole := "update workspaces set pinned_source = 'stripe', pinned_account = '', pinned_livemode = true, pinned_source_id = 'sub_1'"
	if _, err := conn.Exec(t.Context(), whole); err != nil {
		t.Errorf("a whole subscription: %v", err)
	}
}

func TestTheOutboxKeepsTheOrderOfWriting(t *testing.T) {
	t.Parallel()
	url := schematest.PostgresURL(t)
	const enqueue = `insert into outbox (id, workspace_id, subject_kind, body) values (gen_random_uuid(), $1, $2, '{}')`
	conn := connect(t, url)
	for _, workspace := range []string{"first", "second"} {
		if _, err := conn.Exec(t.Context(), enqueue, workspace, "plan.invalidated"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Exec(t.Context(), enqueue, "third", "decision.made"); codeOf(err) != "23514" {
		t.Errorf("an event that the outbox does not carry: %v, want a check violation", err)
	}
	rows, err := conn.Query(t.Context(), "select workspace_id from outbox where published_at is null order by position")
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if diff := cmp.Diff([]string{"first", "second"}, got); diff != "" || err != nil {
		t.Errorf("outbox (%v, -want +got):\n%s", err, diff)
	}
}

func codeOf(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

func TestTheLimitColumnsAreNamedAsTheLimits(t *testing.T) {
	t.Parallel()
	rows, err := schematest.Postgres(t).Query(t.Context(), `
		select column_name::text from information_schema.columns
		where table_name = 'plan_revisions' and column_name like 'max\_%' order by ordinal_position`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(schemas.LimitNames, got); diff != "" {
		t.Errorf("columns (-limits +columns):\n%s", diff)
	}
}
