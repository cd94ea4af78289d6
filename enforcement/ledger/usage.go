package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/enforcement"
)

// Usage is what the ledger knows of a workspace: used and peak of the period; the
// executions that hold a lease, whatever period they were charged to; and those that
// are over and of which a request may be under way. What was decided but not yet
// folded is not in it. It implements enforcement.UsageSource.
func (s *Store) Usage(ctx context.Context, workspace, usageEpoch string) (enforcement.Usage, error) {
	var usage enforcement.Usage
	err := pgx.BeginTxFunc(ctx, s.pool, oneView, func(tx pgx.Tx) error {
		var err error
		if usage.Used, usage.Peak, err = period(ctx, tx, workspace, usageEpoch); err != nil {
			return err
		}
		if usage.Leases, err = leases(ctx, tx, workspace); err != nil {
			return err
		}
		usage.Over, err = over(ctx, tx, workspace)
		return err
	})
	if err != nil {
		return enforcement.Usage{}, fmt.Errorf("read usage of workspace %s: %w", workspace, err)
	}
	return usage, nil
}

// oneView makes all reads of a transaction see the same state.
var oneView = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

func period(ctx context.Context, tx pgx.Tx, workspace, usageEpoch string) (used, peak int64, err error) {
	err = tx.QueryRow(ctx, `
		select used, peak from period_usage where workspace_id = @workspace and usage_epoch = @epoch`,
		pgx.NamedArgs{"workspace": workspace, "epoch": usageEpoch}).Scan(&used, &peak)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, nil
	}
	return used, peak, err
}

func leases(ctx context.Context, tx pgx.Tx, workspace string) ([]enforcement.Lease, error) {
	rows, err := tx.Query(ctx, `
		select execution_id, leased_until, usage_epoch, admitted_at from executions
		where workspace_id = @workspace and outcome is null and decided and leased_until > now()
		order by leased_until, execution_id`,
		pgx.NamedArgs{"workspace": workspace})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[enforcement.Lease])
}

// over is what holds no lease: executions of the last quarter of an hour that ended, or
// that ended before they were heard of, and those whose lease ended without a
// completion. A request that was not acknowledged is delivered again well within that
// time; one that comes later is judged anew.
func over(ctx context.Context, tx pgx.Tx, workspace string) ([]enforcement.Over, error) {
	rows, err := tx.Query(ctx, `
		(select execution_id, outcome, usage_epoch, admitted_at from executions
			where workspace_id = @workspace and decided and outcome is not null and admitted_at > now() - interval '15 minutes'
			order by admitted_at desc limit @most)
		union all
		(select execution_id, outcome, '', null from executions
			where workspace_id = @workspace and admitted_at is null and not decided and outcome is not null
				and completed_at > now() - interval '15 minutes'
			limit @most)
		union all
		(select execution_id, '', usage_epoch, admitted_at from executions
			where workspace_id = @workspace and decided and outcome is null
				and leased_until <= now() and leased_until > now() - interval '7 days'
			order by leased_until desc limit @most)`,
		pgx.NamedArgs{"workspace": workspace, "most": mostOver})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (o enforcement.Over, err error) {
		var at *time.Time
		if err = row.Scan(&o.ExecutionID, &o.Outcome, &o.UsageEpoch, &at); at != nil {
			o.AdmittedAt = *at
		}
		return o, err
	})
}

// mostOver bounds each kind of what is over.
const mostOver = 10_000

// admission is when an execution was admitted.
type admission struct {
	Execution string
	At        time.Time
}

// Admitted is when each of these executions of a workspace was admitted, as far as that
// is folded.
func (s *Store) Admitted(ctx context.Context, workspace string, executions []string) (map[string]time.Time, error) {
	admitted := make(map[string]time.Time, len(executions))
	if len(executions) == 0 {
		return admitted, nil
	}
	rows, err := s.pool.Query(ctx, `
		select execution_id, admitted_at from executions
		where workspace_id = @workspace and execution_id = any(@executions) and admitted_at is not null`,
		pgx.NamedArgs{"workspace": workspace, "executions": executions})
	if err != nil {
		return nil, fmt.Errorf("read starts of executions of workspace %s: %w", workspace, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[admission])
	if err != nil {
		return nil, fmt.Errorf("read starts of executions of workspace %s: %w", workspace, err)
	}
	for _, a := range found {
		admitted[a.Execution] = a.At.UTC()
	}
	return admitted, nil
}
