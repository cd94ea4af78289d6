package schematest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/cmd/headroom/devstack"
	"github.com/headroomhq/headroom/schemas"
)

const (
	template      = "headroom_template"
	closePatience = 10 * time.Second
)

// What the tests of this process have in common; tests have no value to carry it in.
var (
	cluster       shared[*migratedCluster]
	databaseURLs  perTest[string]
	databasePools perTest[*pgxpool.Pool]
)

// migratedCluster is a cluster with a migrated database to copy, which nobody can
// connect to, so that it can be copied at any time.
type migratedCluster struct {
	*devstack.Postgres
	made atomic.Int64
}

// Postgres is a pool on a database of the test's own, fresh and fully migrated. The
// database is dropped at cleanup; a connection that the test did not release is then an error.
func Postgres(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return databasePools.of(t, func(t testing.TB) *pgxpool.Pool {
		t.Helper()
		address := PostgresURL(t)
		ctx, cancel := bounded(t)
		defer cancel()
		pool, err := pgxpool.New(ctx, address)
		if err != nil {
			t.Fatalf("open a pool on the test's database: %v", err)
		}
		t.Cleanup(func() { closePool(t, pool) })
		return pool
	})
}

// Pool is a pool of so many connections on an address, for a test that needs another one
// beside Postgres, or one that is as small as it may be. It is closed at cleanup.
func Pool(t testing.TB, address string, connections int32) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		t.Fatalf("read a pool's address: %v", err)
	}
	config.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatalf("open a pool of %d connections: %v", connections, err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// PostgresURL is the address of the database that Postgres gives the same test, with the
// password, for a test that starts processes or opens connections itself.
func PostgresURL(t testing.TB) string {
	t.Helper()
	return databaseURLs.of(t, func(t testing.TB) string {
		t.Helper()
		running, err := cluster.get(startMigrated)
		if err != nil {
			t.Fatalf("no PostgreSQL for the test: %v", err)
		}
		ctx, cancel := bounded(t)
		defer cancel()
		name := fmt.Sprintf("test_%d", running.made.Add(1))
		if err := running.execute(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
			t.Fatalf("create the test's database: %v", err)
		}
		t.Cleanup(func() {
			ctx, cancel := bounded(t)
			defer cancel()
			if err := running.execute(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
				t.Errorf("drop the test's database: %v", err)
			}
		})
		return running.database(name)
	})
}

// PostgresServer is a cluster of the test's own that it may kill, restart or
// pause, with an empty database that is migrated. It costs a second or two.
func PostgresServer(t testing.TB) *devstack.Postgres {
	t.Helper()
	return postgresServer(t, devstack.PostgresOptions{})
}

// DurablePostgresServer is a PostgresServer whose commits wait for the disk, as those of
// an installation do: what a benchmark of commits is measured on.
func DurablePostgresServer(t testing.TB) *devstack.Postgres {
	t.Helper()
	return postgresServer(t, devstack.PostgresOptions{Durable: true})
}

func postgresServer(t testing.TB, options devstack.PostgresOptions) *devstack.Postgres {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	started, err := devstack.StartPostgres(ctx, options)
	if err != nil {
		t.Fatalf("no PostgreSQL for the test: %v", err)
	}
	t.Cleanup(func() { stop(t, started) })
	if err := schemas.Migrate(ctx, started.URL(), Logger(t)); err != nil {
		t.Fatalf("migrate the test's cluster: %v", err)
	}
	return started
}

func startMigrated() (*migratedCluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	started, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{})
	if err != nil {
		return nil, err
	}
	c := &migratedCluster{Postgres: started}
	if err := c.makeTemplate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("make the template database: %w", err), started.Stop(ctx))
	}
	return c, nil
}

func (c *migratedCluster) makeTemplate(ctx context.Context) error {
	if err := c.execute(ctx, "CREATE DATABASE "+template); err != nil {
		return err
	}
	if err := schemas.Migrate(ctx, c.database(template), slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	return c.execute(ctx, "ALTER DATABASE "+template+" ALLOW_CONNECTIONS false")
}

func (c *migratedCluster) execute(ctx context.Context, statement string) error {
	session, err := pgx.Connect(ctx, c.URL())
	if err != nil {
		return err
	}
	_, err = session.Exec(ctx, statement)
	return errors.Join(err, session.Close(ctx))
}

// database is the address of another database of the cluster.
func (c *migratedCluster) database(name string) string {
	u, err := url.Parse(c.URL())
	if err != nil {
		panic(fmt.Sprintf("devstack made an address that is none: %v", err))
	}
	u.Path = "/" + name
	return u.String()
}

// closePool waits for the pool's connections to come back, but not for ever.
func closePool(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		pool.Close()
	}()
	deadline := time.NewTimer(closePatience)
	defer deadline.Stop()
	select {
	case <-closed:
	case <-deadline.C:
		t.Errorf("the test still holds %d connections of its pool: release rows, transactions and connections", pool.Stat().AcquiredConns())
	}
}

func stop(t testing.TB, s service) {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Errorf("stop the test's service: %v", err)
	}
}
