package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

func postgresDiagnoses() []diagnosis {
	const service = "postgres"
	return []diagnosis{
		{
			"postgres.reachable", service, "no server answers, or it does not let Headroom in", "",
			"start the server, or correct HEADROOM_POSTGRES_URL",
		},
		{
			"postgres.version", service, "the server is older than PostgreSQL 15", "",
			"upgrade to PostgreSQL 15 or later",
		},
		{
			"postgres.primary", service, "HEADROOM_POSTGRES_URL leads to a standby, or to a database that is read only", "",
			"let HEADROOM_POSTGRES_URL name the primary (several hosts with target_session_attrs=read-write find it), and set default_transaction_read_only to off",
		},
		{
			"postgres.migrations", service, "migrations are not applied", "a newer Headroom has applied migrations that this one does not know",
			"run `headroom migrate`; if the database is newer, run the version that made it",
		},
		{
			"postgres.isolation", service, "default_transaction_isolation is not read committed: guarded updates end with errors instead of waiting", "",
			"ALTER DATABASE … SET default_transaction_isolation = 'read committed', and the same for the role",
		},
		{
			"postgres.timezone", service, "", "Headroom's sessions are not in UTC, which a pooler between may cause",
			"let the pooler pass the timezone parameter on, or set it to UTC with ALTER ROLE",
		},
		{
			"postgres.durability", service, "synchronous_commit is off: what was acknowledged is lost when the server is killed", "fsync or full_page_writes is off: the database is lost with its machine's power",
			"set synchronous_commit, fsync and full_page_writes to on, also for the database and the role",
		},
		{
			"postgres.connections", service, "the server allows fewer connections than one instance may open", "it allows fewer than two instances may open, or 80 % of what it allows are in use",
			"raise max_connections (or the role's or the database's CONNECTION LIMIT), or lower pool_max_conns in HEADROOM_POSTGRES_URL",
		},
		{
			"postgres.timeouts", service, "a timeout is set under a second", "a timeout is set under what Headroom's own longest work takes",
			"ALTER ROLE … SET the timeout that is named to 0, or to more than is named: Headroom bounds its own work",
		},
		{
			"postgres.catalog", service, "no plan is the default one: no catalog was applied, and executions are denied with 9008", "",
			"run `headroom plans apply FILE`; examples/catalog.yaml is one to begin with",
		},
		{
			"postgres.outbox", service, "news of plans and periods have waited for more than 15 minutes", "for more than a minute",
			"see that `headroom serve` runs and reaches NATS, and what its log says of the relay",
		},
	}
}

// postgresPatient is a database that answers, and what it says of itself.
type postgresPatient struct {
	pool  *pgxpool.Pool
	facts postgresFacts
}

// postgresFacts are read in one go by a session like those of serve.
type postgresFacts struct {
	// Settings are those of the session, in the server's base units: milliseconds.
	Settings map[string]string
	Standby  bool
	// InUse are the connections of all clients, and the limits are -1 for none.
	InUse, RoleLimit, DatabaseLimit int
}

const postgresFactsSQL = `SELECT
	(SELECT jsonb_object_agg(name, setting) FROM pg_settings WHERE name IN ('server_version', 'server_version_num',
		'transaction_read_only', 'default_transaction_isolation', 'TimeZone', 'synchronous_commit', 'fsync', 'full_page_writes',
		'max_connections', 'superuser_reserved_connections', 'reserved_connections',
		'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')),
	pg_is_in_recovery(),
	(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
	(SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user),
	(SELECT datconnlimit FROM pg_database WHERE datname = current_database())`

func (d *doctor) reachPostgres(ctx context.Context) {
	if d.faulty["HEADROOM_POSTGRES_URL"] {
		d.found("postgres.reachable", fails("not checked: HEADROOM_POSTGRES_URL has a fault"))
		return
	}
	asking, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	pool, err := newPostgres(ctx, d.config)
	if err != nil {
		d.found("postgres.reachable", unasked(err))
		return
	}
	facts, err := readPostgres(asking, pool)
	if err != nil {
		pool.Close()
		d.found("postgres.reachable", fails("no server answers at %s: %s", d.config.PostgresURL, strings.ReplaceAll(err.Error(), "\n", " ")).
			with("error", err.Error()))
		return
	}
	d.db = &postgresPatient{pool: pool, facts: facts}
	d.found("postgres.reachable", passes("a server answers at %s", d.config.PostgresURL))
}

func readPostgres(ctx context.Context, pool *pgxpool.Pool) (postgresFacts, error) {
	rows, err := pool.Query(ctx, postgresFactsSQL)
	if err != nil {
		return postgresFacts{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[postgresFacts])
}

func (d *doctor) postgresChecks() []examination {
	if d.db == nil {
		return nil
	}
	pool, facts := d.db.pool, d.db.facts
	of := func(judge func(postgresFacts) judgement) func(context.Context) judgement {
		return func(context.Context) judgement { return judge(facts) }
	}
	return []examination{
		{"postgres.version", of(judgePostgresVersion)},
		{"postgres.primary", of(judgeStandby)},
		{"postgres.isolation", of(judgeIsolation)},
		{"postgres.timezone", of(judgeTimeZone)},
		{"postgres.durability", of(judgeDurability)},
		{"postgres.timeouts", of(judgeTimeouts)},
		{"postgres.connections", of(func(f postgresFacts) judgement { return judgeConnections(f, d.connectionsNeeded()) })},
		{"postgres.migrations", func(ctx context.Context) judgement {
			state, err := schemas.Migrations(ctx, pool)
			if err != nil {
				return unasked(err)
			}
			return judgeMigrations(state)
		}},
		{"postgres.catalog", d.catalog},
		{"postgres.outbox", func(ctx context.Context) judgement {
			waiting, err := subscriptions.NewOutbox(pool).Waiting(ctx)
			if err != nil {
				return unread(err)
			}
			return judgeOutbox(waiting)
		}},
	}
}

// connectionsNeeded is how many one instance opens at most: what follows Stripe has a
// pool of its own.
func (d *doctor) connectionsNeeded() int {
	needed := int(d.db.pool.Config().MaxConns)
	if d.config.followsStripe() {
		needed *= 2
	}
	return needed
}

// unread is the judgement of a check whose table gave no answer.
func unread(err error) judgement {
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok && answer.Code == pgUndefinedTable {
		return fails("could not be checked: the database is not prepared, see postgres.migrations").with("error", err.Error())
	}
	return unasked(err)
}

func (d *doctor) catalog(ctx context.Context) judgement {
	plans, err := subscriptions.NewStore(d.db.pool, d.config.storeOptions()).Plans(ctx)
	if err != nil {
		return unread(err)
	}
	fallback := ""
	for _, plan := range plans {
		if plan.Default {
			fallback = plan.Key
		}
	}
	j := passes("%s, %s is the default one", counted(len(plans), "plan"), fallback)
	if fallback == "" {
		j = fails("%s, and none is the default one", counted(len(plans), "plan"))
	}
	return j.with("plans", len(plans)).with("default", fallback)
}

func judgeOutbox(w subscriptions.Waiting) judgement {
	j := passes("no news wait to be published")
	if w.News > 0 {
		j = judged(byAge(w.Oldest, waitWarn, waitFail), "%d news wait to be published, the oldest for %s", w.News, brief(w.Oldest))
	}
	return j.with("news", w.News).with("oldest_seconds", w.Oldest.Seconds())
}

func judgeMigrations(state schemas.MigrationState) judgement {
	j := passes("every migration is applied")
	switch {
	case len(state.Missing) > 0:
		j = fails("%s not applied: %s", counted(len(state.Missing), "migration"), several(state.Missing))
	case len(state.Unknown) > 0:
		j = warns("versions applied that this Headroom does not know: %s", strings.Trim(fmt.Sprint(state.Unknown), "[]"))
	}
	return j.with("missing", list(state.Missing)).with("unknown", list(state.Unknown))
}
