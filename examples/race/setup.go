package race

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// feature is what the plan limits.
const feature = "projects"

// catalog has one plan, which every workspace is on. The number is filled in.
const catalog = `
plans:
  free:
    default: true
    rank: 0
    limits:
      max_executions: 0
      max_concurrent_executions: 0
      max_tasks_per_execution: 0
      max_execution_duration_minutes: 0
      max_execution_payload_size_mb: 0
      max_storage_mb: 0
      max_executions_per_minute: 0
    features: {projects: %d}
`

// connections are those of each of the two pools.
const connections = 20

// New makes what the race needs in the database: Headroom's tables, a plan that every
// workspace is on, and a table of projects.
func New(ctx context.Context, o Options) (*Race, error) {
	if o.Limit < 1 || o.Requests < 1 {
		return nil, errors.New("limit and requests must be 1 or more")
	}
	if o.Work == nil {
		o.Work = query
	}
	r := &Race{options: o}
	if err := r.open(ctx); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close ends the connections.
func (r *Race) Close() {
	for _, pool := range r.pools {
		if pool != nil {
			pool.Close()
		}
	}
}

func (r *Race) open(ctx context.Context) error {
	if err := schemas.Migrate(ctx, r.options.PostgresURL, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	for i := range r.pools {
		config, err := pgxpool.ParseConfig(r.options.PostgresURL)
		if err != nil {
			return fmt.Errorf("read the address of PostgreSQL: %w", err)
		}
		config.MaxConns = connections
		if r.pools[i], err = pgxpool.NewWithConfig(ctx, config); err != nil {
			return fmt.Errorf("connect to PostgreSQL: %w", err)
		}
	}
	plans, err := subscriptions.ParseCatalog("the race's catalog", fmt.Appendf(nil, catalog, r.options.Limit))
	if err != nil {
		return err
	}
	store := subscriptions.NewStore(r.pools[0], subscriptions.StoreOptions{})
	if _, err := store.ApplyCatalog(ctx, plans); err != nil {
		return err
	}
	if err := r.protect(store); err != nil {
		return err
	}
	const table = `CREATE TABLE projects (
		id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, workspace_id text NOT NULL)`
	if _, err := r.pools[0].Exec(ctx, table); err != nil {
		return fmt.Errorf("make the table of projects: %w", err)
	}
	return nil
}

// protect makes the guards and the counters. All learn the limit from the plan.
func (r *Race) protect(store *subscriptions.Store) error {
	plans := subscriptions.NewCache(store.PlanInfo, subscriptions.CacheOptions{})
	r.counters = usage.New(usage.Options{Pool: r.pools[0], Plans: plans, Catalog: store})
	provider, err := guard.NewPlanProvider(guard.PlanOptions{Plans: plans, Catalog: store})
	if err != nil {
		return err
	}
	r.process, err = guard.New(guard.Options[pgx.Tx]{
		Provider: provider,
		Lock:     guard.NewProcessLock(guard.ProcessOptions[pgx.Tx]{Transact: transact(r.pools[0])}),
	})
	if err != nil {
		return err
	}
	for i, pool := range r.pools {
		r.postgres[i], err = guard.New(guard.Options[pgx.Tx]{
			Provider: provider, Lock: guard.NewAdvisoryLock(pool, guard.PostgresOptions{}),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// seed makes the projects that exist in a workspace, and counts them for the way that
// keeps a counter.
func (r *Race) seed(ctx context.Context, workspace string) error {
	return pgx.BeginFunc(ctx, r.pools[0], func(tx pgx.Tx) error {
		const some = `INSERT INTO projects (workspace_id) SELECT @workspace FROM generate_series(1, @n::bigint)`
		if _, err := tx.Exec(ctx, some, pgx.NamedArgs{"workspace": workspace, "n": r.options.Limit - 1}); err != nil {
			return fmt.Errorf("make the first projects: %w", err)
		}
		_, err := r.counters.Consume(ctx, tx, usage.Change{WorkspaceID: workspace, Feature: feature, Quantity: r.options.Limit - 1})
		return err
	})
}

// query is some work for the database.
func query(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `SELECT count(*) FROM generate_series(1, 5000)`)
	return err
}
