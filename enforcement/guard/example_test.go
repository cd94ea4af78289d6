package guard_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/schemas"
)

// fixed is a provider for examples: everybody may have two of everything.
type fixed struct{}

func (fixed) Resolve(context.Context, string, string) (guard.Resolution, error) {
	return guard.Resolution{Kind: guard.KindLimit, Limit: schemas.LimitOf(2), PlanKey: "free", Source: guard.SourceDefault}, nil
}

// Projects in the memory of one process.
func ExampleGuard() {
	client, err := guard.New(guard.Options[struct{}]{Provider: fixed{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var projects []string
	create := func(name string) (string, guard.Details, error) {
		return guard.Guard(context.Background(), client,
			guard.Request{Organization: "ws_1", Privilege: "projects", Requested: 1},
			guard.Callbacks[string, struct{}]{
				Count: guard.Total(func(context.Context, struct{}) (int64, error) { return int64(len(projects)), nil }),
				Act: func(context.Context, struct{}) (string, error) {
					projects = append(projects, name)
					return name, nil
				},
			})
	}
	for _, name := range []string{"one", "two", "three"} {
		made, details, err := create(name)
		var full *guard.EntitlementLimitExceeded
		switch {
		case errors.As(err, &full):
			fmt.Printf("%s: %d of %d are used\n", name, full.Current, full.Limit)
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Printf("%s: made, %d left\n", made, *details.Remaining)
		}
	}
	// Output:
	// one: made, 1 left
	// two: made, 0 left
	// three: 2 of 2 are used
}

// Application is what the other examples have.
type Application struct {
	pool  *pgxpool.Pool
	guard *guard.Client[pgx.Tx]
}

// NewApplication joins the guard to the application's pool, and to Headroom's plans.
func NewApplication(pool *pgxpool.Pool, plans guard.Plans, catalog guard.Catalog) (*Application, error) {
	provider, err := guard.NewPlanProvider(guard.PlanOptions{Plans: plans, Catalog: catalog})
	if err != nil {
		return nil, err
	}
	client, err := guard.New(guard.Options[pgx.Tx]{
		Provider: provider,
		Lock:     guard.NewAdvisoryLock(pool, guard.PostgresOptions{LockTimeout: 2 * time.Second}),
	})
	return &Application{pool: pool, guard: client}, err
}

// CreateProject makes one more project if the workspace's plan has room for it.
func (a *Application) CreateProject(ctx context.Context, workspace, name string) (id int64, err error) {
	id, _, err = guard.Guard(ctx, a.guard,
		guard.Request{Organization: workspace, Privilege: "projects", Requested: 1},
		guard.Callbacks[int64, pgx.Tx]{
			Count: guard.Total(func(ctx context.Context, tx pgx.Tx) (n int64, err error) {
				err = tx.QueryRow(ctx, `SELECT count(*) FROM projects WHERE workspace = $1`, workspace).Scan(&n)
				return n, err
			}),
			Act: func(ctx context.Context, tx pgx.Tx) (id int64, err error) {
				err = tx.QueryRow(ctx, `INSERT INTO projects (workspace, name) VALUES ($1, $2) RETURNING id`, workspace, name).Scan(&id)
				return id, err
			},
		})
	return id, err
}

// A guard in the application's own database.
func ExampleNewAdvisoryLock() {
	var pool *pgxpool.Pool // through PgBouncer: …?default_query_exec_mode=exec
	var plans guard.Plans  // client.Plans, which is told of changes
	var catalog guard.Catalog
	create := func(ctx context.Context) error {
		application, err := NewApplication(pool, plans, catalog)
		if err != nil {
			return err
		}
		_, err = application.CreateProject(ctx, "ws_1", "Moon")
		return err
	}
	_ = create
}

// A row of the application's own as the lock.
func ExampleNewRowLock() {
	var pool *pgxpool.Pool
	byRow := func() (*guard.RowLock, error) {
		return guard.NewRowLock(pool, guard.RowOptions{
			Query: `SELECT 1 FROM workspaces WHERE id = @organization FOR NO KEY UPDATE`,
		})
	}
	_ = byRow
}

// What to show beside the button. It is no protection.
func ExampleClient_RequireWithin() {
	client, err := guard.New(guard.Options[struct{}]{Provider: fixed{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := guard.Request{Organization: "ws_1", Privilege: "projects", Requested: 1}
	_, err = client.RequireWithin(context.Background(), request, guard.Usage{Total: 2})
	fmt.Println(err)
	// Output: 1 of projects asked for; 2 of the 2 that plan free allows per organization are used
}

// What each error asks of the caller.
func ExampleEntitlementLimitExceeded() {
	status := func(err error) int {
		var full *guard.EntitlementLimitExceeded
		var refused *guard.NotEntitled
		var away *guard.ProviderUnavailable
		var late *guard.LockTimeout
		var broken *guard.LockUnavailable
		var unknown *guard.OutcomeUnknown
		switch {
		case err == nil:
			return 200
		case errors.As(err, &full):
			return 429 // an upgrade, or less of it
		case errors.As(err, &refused):
			return 422 // an upgrade
		case errors.As(err, &away), errors.As(err, &late), errors.As(err, &broken):
			return 503 // nothing was done: try again
		case errors.As(err, &unknown):
			return 500 // it was done or not: look before trying again
		}
		return 500
	}
	fmt.Println(status(&guard.EntitlementLimitExceeded{Limit: 5, Current: 5, Requested: 1}))
	fmt.Println(status(fmt.Errorf("create project: %w", &guard.LockTimeout{})))
	// Output:
	// 429
	// 503
}
