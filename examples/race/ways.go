package race

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/enforcement/usage"
)

// errRefused is a request that the limit has no room for.
var errRefused = errors.New("no room for another project")

const (
	countProjects = `SELECT count(*) FROM projects WHERE workspace_id = @workspace`
	insertProject = `INSERT INTO projects (workspace_id) VALUES (@workspace)`
)

// checkThenInsert is what most applications do. The transaction does not help: each one
// reads what was committed before, and none sees the inserts of the others.
func (r *Race) checkThenInsert(ctx context.Context, workspace string, request int) error {
	return pgx.BeginFunc(ctx, r.pool(request), func(tx pgx.Tx) error {
		n, err := count(ctx, tx, workspace)
		if err != nil {
			return err
		}
		if n >= r.options.Limit {
			return errRefused
		}
		return r.insert(ctx, tx, workspace)
	})
}

// guarded is the same with a guard around both steps: the lock makes them one.
func (r *Race) guarded(ctx context.Context, workspace string, client *guard.Client[pgx.Tx]) error {
	_, _, err := guard.Guard(ctx, client, guard.Request{Organization: workspace, Privilege: feature, Requested: 1},
		guard.Callbacks[struct{}, pgx.Tx]{
			Count: guard.Total(func(ctx context.Context, tx pgx.Tx) (int64, error) { return count(ctx, tx, workspace) }),
			Act: func(ctx context.Context, tx pgx.Tx) (struct{}, error) {
				return struct{}{}, r.insert(ctx, tx, workspace)
			},
		})
	var exceeded *guard.EntitlementLimitExceeded
	if errors.As(err, &exceeded) {
		return errRefused
	}
	return err
}

// consume needs no lock of its own: the statement that counts also checks, and its row
// stays locked until the transaction ends.
func (r *Race) consume(ctx context.Context, workspace string, request int) error {
	err := pgx.BeginFunc(ctx, r.pool(request), func(tx pgx.Tx) error {
		_, err := r.counters.Consume(ctx, tx, usage.Change{WorkspaceID: workspace, Feature: feature, Quantity: 1})
		if err != nil {
			return err
		}
		return r.insert(ctx, tx, workspace)
	})
	var exceeded *usage.QuotaExceeded
	if errors.As(err, &exceeded) {
		return errRefused
	}
	return err
}

// transact makes the in-process lock run count and act in a transaction.
func transact(pool *pgxpool.Pool) func(context.Context, func(context.Context, pgx.Tx) error) error {
	return func(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return fn(ctx, tx) })
	}
}

func count(ctx context.Context, tx pgx.Tx, workspace string) (int64, error) {
	rows, err := tx.Query(ctx, countProjects, pgx.NamedArgs{"workspace": workspace})
	if err != nil {
		return 0, fmt.Errorf("count projects: %w", err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	if err != nil {
		return 0, fmt.Errorf("count projects: %w", err)
	}
	return n, nil
}

// insert is what a request does once it may: its own work, and the row.
func (r *Race) insert(ctx context.Context, tx pgx.Tx, workspace string) error {
	if err := r.options.Work(ctx, tx); err != nil {
		return fmt.Errorf("do the request's own work: %w", err)
	}
	if _, err := tx.Exec(ctx, insertProject, pgx.NamedArgs{"workspace": workspace}); err != nil {
		return fmt.Errorf("insert project: %w", err)
	}
	return nil
}
