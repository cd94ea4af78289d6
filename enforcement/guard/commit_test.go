package guard_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// slowCommits makes every commit of a project wait until the test lets go of a lock.
func slowCommits(t testing.TB) (release func()) {
	t.Helper()
	if _, err := schematest.Postgres(t).Exec(t.Context(), `
		CREATE FUNCTION wait_for_the_test() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN PERFORM pg_advisory_xact_lock(1, 1); RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON projects DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION wait_for_the_test()`); err != nil {
		t.Fatal(err)
	}
	session, err := pgx.Connect(t.Context(), schematest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close(context.WithoutCancel(t.Context())) })
	if _, err := session.Exec(t.Context(), "SELECT pg_advisory_lock(1, 1)"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := session.Exec(t.Context(), "SELECT pg_advisory_unlock(1, 1)"); err != nil {
			t.Error(err)
		}
	}
}

func TestARequestThatEndsDuringTheCommitChangesNothing(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t, database(t), 2)
	release := slowCommits(t)
	client := newClient(t, limited(5), guard.NewAdvisoryLock(pool, guard.PostgresOptions{CommitTimeout: patience}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := starts(ctx, client, "org")
	eventually(t, isWaiting, "the commit")
	cancel()
	release()
	if err := await(t, done, "the guard"); err != nil {
		t.Errorf("got %v, want success: it was committed", err)
	}
	if got := stored(t, "org"); got != 1 {
		t.Errorf("%d projects are stored, want 1", got)
	}
}

// The same error, and the row is there or it is not: nobody can tell from the error.
func TestACommitWithoutAnAnswerHasAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		way  func(testing.TB, string) string
		want int64
	}{
		"the request to cancel arrives": {func(_ testing.TB, address string) string { return address }, 0},
		"the request to cancel is lost": {withoutCancels, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := database(t)
			release := slowCommits(t)
			pool := schematest.Pool(t, tc.way(t, address), 2)
			client := newClient(t, limited(5), guard.NewAdvisoryLock(pool, guard.PostgresOptions{CommitTimeout: 300 * time.Millisecond}))
			err := await(t, starts(t.Context(), client, "org"), "the guard")
			var unknown *guard.OutcomeUnknown
			if !errors.As(err, &unknown) || unknown.Cause == nil {
				t.Errorf("got %v, want *OutcomeUnknown with the cause", err)
			}
			if tc.want == 0 {
				eventually(t, isAlone, "the end of the commit")
			}
			release()
			eventually(t, `SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
				AND state <> 'idle' AND pid <> pg_backend_pid())`, "the end of what the backend did")
			if got := stored(t, "org"); got != tc.want {
				t.Errorf("%d projects are stored, want %d", got, tc.want)
			}
		})
	}
}

// A trigger of the application's own fails as the lock's own check does, and is not it.
func TestATriggerThatDividesByZeroAtTheCommit(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t, database(t), 2)
	if _, err := pool.Exec(t.Context(), `
		CREATE FUNCTION divide() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM 1/0; RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON projects DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION divide()`); err != nil {
		t.Fatal(err)
	}
	client := newClient(t, limited(5), guard.NewAdvisoryLock(pool, guard.PostgresOptions{}))
	err := await(t, starts(t.Context(), client, "org"), "the guard")
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || errors.Is(err, guard.ErrEnded) || is[*guard.OutcomeUnknown](err) {
		t.Errorf("got %v, want the trigger's error alone", err)
	}
}

// What the server itself refuses at the commit is no unknown outcome.
func TestACommitThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t, database(t), 2)
	if _, err := pool.Exec(t.Context(), `ALTER TABLE projects ADD FOREIGN KEY (organization) REFERENCES organizations
		DEFERRABLE INITIALLY DEFERRED`); err != nil {
		t.Fatal(err)
	}
	client := newClient(t, limited(5), guard.NewAdvisoryLock(pool, guard.PostgresOptions{}))
	err := await(t, starts(t.Context(), client, "org"), "the guard")
	if err == nil || is[*guard.OutcomeUnknown](err) {
		t.Errorf("got %v, want the server's refusal", err)
	}
	if got := stored(t, "org"); got != 0 {
		t.Errorf("%d projects are stored", got)
	}
}

func TestWhatActMayNotDoToTheTransaction(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in     func(context.Context, pgx.Tx) error
		want   error
		stored int64
	}{
		"swallow an error of SQL": {func(ctx context.Context, tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, "SELECT 1/0")
			return nil
		}, guard.ErrSwallowed, 0},
		"end it with SQL": {func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "COMMIT")
			return err
		}, guard.ErrEnded, 1},
		"end it with SQL and begin another": {func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "COMMIT; BEGIN")
			return err
		}, guard.ErrEnded, 1},
		"roll it back and go on in another": {func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "ROLLBACK AND CHAIN")
			return err
		}, guard.ErrEnded, 0},
		"roll back to a savepoint": {func(ctx context.Context, tx pgx.Tx) error {
			inner, err := tx.Begin(ctx)
			if err != nil {
				return err
			}
			_, _ = inner.Exec(ctx, "SELECT 1/0")
			return inner.Rollback(ctx)
		}, nil, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := schematest.Pool(t, database(t), 1)
			client := newClient(t, limited(5), guard.NewAdvisoryLock(pool, guard.PostgresOptions{}))
			if _, _, err := guard.Guard(t.Context(), client, request("org"), projects("org", tc.in)); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if got := stored(t, "org"); got != tc.stored {
				t.Errorf("%d projects are stored, want %d", got, tc.stored)
			}
			if err := await(t, starts(t.Context(), client, "org"), "a guard"); err != nil {
				t.Errorf("the next guard gives %v", err)
			}
		})
	}
	t.Run("commit or roll back itself", func(t *testing.T) {
		t.Parallel()
		client := newClient(t, limited(5), guard.NewAdvisoryLock(schematest.Pool(t, database(t), 1), guard.PostgresOptions{}))
		_, _, err := guard.Guard(t.Context(), client, request("org"), projects("org", func(ctx context.Context, tx pgx.Tx) error {
			if tx.Commit(ctx) == nil || tx.Rollback(ctx) == nil {
				t.Error("act may end the transaction")
			}
			return nil
		}))
		if err != nil || stored(t, "org") != 1 {
			t.Errorf("got %v and %d projects, want that act's attempts changed nothing", err, stored(t, "org"))
		}
	})
}

// Nothing was sent, so that everybody knows what is stored: nothing.
func TestACommitThatIsNotSentHasAnOutcome(t *testing.T) {
	t.Parallel()
	tests := map[string]func(context.Context, pgx.Tx) error{
		"act leaves its rows open": func(ctx context.Context, tx pgx.Tx) error {
			_ = tx.Conn().PgConn().Exec(ctx, "SELECT generate_series(1, 10)")
			return nil
		},
		"act closes the connection": func(ctx context.Context, tx pgx.Tx) error { return tx.Conn().Close(ctx) },
		"act ignores that the connection is gone": func(ctx context.Context, tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
			return nil
		},
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := newClient(t, limited(5), guard.NewAdvisoryLock(schematest.Pool(t, database(t), 1), guard.PostgresOptions{}))
			_, _, err := guard.Guard(t.Context(), client, request("org"), projects("org", in))
			if err == nil || is[*guard.OutcomeUnknown](err) {
				t.Errorf("got %v, want an error, and not one of an unknown outcome", err)
			}
			if got := stored(t, "org"); got != 0 {
				t.Errorf("%d projects are stored, want none", got)
			}
			if err := await(t, starts(t.Context(), client, "org"), "a guard"); err != nil {
				t.Errorf("the next guard gives %v", err)
			}
		})
	}
}

// The server says that it ends the connection, and not whether it committed before.
func TestABackendThatIsKilledInTheCommitHasAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	address := database(t)
	release := slowCommits(t)
	defer release()
	tests := map[string]guard.Lock[pgx.Tx]{
		"advisory":     guard.NewAdvisoryLock(schematest.Pool(t, address, 1), guard.PostgresOptions{}),
		"serializable": guard.NewSerializableLock(schematest.Pool(t, address, 1), guard.PostgresOptions{}),
	}
	for name, lock := range tests {
		done := starts(t.Context(), newClient(t, limited(5), lock), "org")
		eventually(t, isWaiting, "the commit")
		if _, err := schematest.Postgres(t).Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_locks
			WHERE locktype = 'advisory' AND NOT granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`); err != nil {
			t.Fatal(err)
		}
		if err := await(t, done, "the guard"); !is[*guard.OutcomeUnknown](err) {
			t.Errorf("%s: got %v, want *OutcomeUnknown", name, err)
		}
		eventually(t, isAlone, "the end of the backend")
	}
}

// A connection that dies in act is an error, and no success.
func TestABackendThatIsKilledInAct(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t, database(t), 2)
	client := newClient(t, limited(5), guard.NewAdvisoryLock(pool, guard.PostgresOptions{}))
	_, _, err := guard.Guard(t.Context(), client, request("org"), projects("org", func(ctx context.Context, tx pgx.Tx) error {
		_, _ = tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
		return nil
	}))
	if err == nil || stored(t, "org") != 0 {
		t.Errorf("got %v and %d projects, want an error and none", err, stored(t, "org"))
	}
	if err := await(t, starts(t.Context(), client, "org"), "a guard"); err != nil {
		t.Errorf("the next guard gives %v", err)
	}
}
