package ledger

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headroomhq/headroom/schemas"
)

// Fold writes a batch in one transaction and moves the positions of its spans.
// Either all of it happens or nothing: ErrMoved when a span does not continue
// from its source's position, an error that IsRefused reports when a value in it
// can never be written, any other error when Postgres is away.
func (s *Store) Fold(ctx context.Context, b Batch) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		for _, span := range inOrder(b.Spans) {
			if err := s.move(ctx, tx, span); err != nil {
				return err
			}
		}
		statements, err := statementsOf(b)
		if err != nil {
			return err
		}
		reached := queueThresholds(statements, b)
		if err := tx.SendBatch(ctx, statements).Close(); err != nil {
			return err
		}
		return tell(ctx, tx, *reached)
	})
	if err != nil {
		return fmt.Errorf("fold %d decisions, %d completions and %d invalidations: %w",
			len(b.Decisions), len(b.Completions), len(b.Invalidated), err)
	}
	return nil
}

type executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// move takes the lock on a position, which also keeps two folds of one source
// from waiting for each other's rows, and moves it.
func (s *Store) move(ctx context.Context, to executor, span Span) error {
	tag, err := to.Exec(ctx, `
		update ledger_applied set sequence = @through, updated_at = now()
		where stream = @source and partition = 0 and sequence = @after`,
		pgx.NamedArgs{"source": span.Source, "after": int64(span.After), "through": int64(span.Through)})
	if err != nil {
		return fmt.Errorf("move position of %s: %w", span.Source, err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("move position of %s from %d to %d: %w", span.Source, span.After, span.Through, ErrMoved)
	}
	return nil
}

func statementsOf(b Batch) (*pgx.Batch, error) {
	statements := &pgx.Batch{}
	admissions, runtime, denials := sortOut(b.Decisions)
	if len(admissions) > 0 {
		queueAdmissions(statements, admissions)
	}
	if len(b.Completions) > 0 {
		queueCompletions(statements, b.Completions)
	}
	if len(runtime) > 0 {
		queueRuntime(statements, runtime)
	}
	if len(denials) > 0 {
		if err := queueDenials(statements, denials); err != nil {
			return nil, err
		}
	}
	return statements, nil
}

// sortOut tells decisions apart: a runtime denial is both counted as a denial and noted
// with its execution.
func sortOut(decisions []Decision) (admissions, runtime, denials []Decision) {
	for _, d := range decisions {
		switch {
		case d.admits():
			admissions = append(admissions, d)
		case d.Code != 0:
			denials = append(denials, d)
			if d.Kind == schemas.KindRuntime {
				runtime = append(runtime, d)
			}
		}
	}
	return admissions, runtime, denials
}

// queueAdmissions writes the rows of allowed executions and counts those whose
// row turns decided, which happens once. One that completed as not_started
// before its decision was read uses nothing.
func queueAdmissions(to *pgx.Batch, decisions []Decision) {
	to.Queue(`
		with incoming as (
			select * from unnest(@workspace::text[], @execution::text[], @decision::text[],
				@event::text[], @event_source::text[], @default_epoch::text[], @subscription::text[],
				@period_start::timestamptz[], @period_end::timestamptz[], @plan::text[], @plan_revision::bigint[],
				@limits::text[], @admitted_at::timestamptz[], @lease_expires_at::timestamptz[],
				@used::bigint[], @concurrent::bigint[], @peak::bigint[], @duration_due_at::timestamptz[])
			as t (workspace_id, execution_id, decision_id, event_id, event_source, default_epoch, subscription_id,
				period_start, period_end, plan_key, plan_revision, limits, admitted_at, lease_expires_at,
				used, concurrent, peak, duration_due_at)
		), counted as (
			insert into executions as e (workspace_id, execution_id, decision_id, request_event_id,
				request_event_source, usage_epoch, subscription_id, period_start, period_end, plan_key,
				plan_revision, limits, admitted_at, lease_expires_at, used, concurrent, peak,
				duration_due_at, leased_until, decided)
			select i.workspace_id, i.execution_id, i.decision_id, i.event_id, i.event_source,
				coalesce(s.usage_epoch, i.subscription_id, i.default_epoch),
				i.subscription_id::uuid, i.period_start, i.period_end, i.plan_key, i.plan_revision,
				i.limits::jsonb, i.admitted_at, i.lease_expires_at, i.used, i.concurrent, i.peak,
				i.duration_due_at, i.lease_expires_at, true
			from incoming i left join subscriptions s on s.id = i.subscription_id::uuid
			order by i.workspace_id, i.execution_id
			on conflict (workspace_id, execution_id) do update set
				decision_id = excluded.decision_id, request_event_id = excluded.request_event_id,
				request_event_source = excluded.request_event_source, usage_epoch = excluded.usage_epoch,
				subscription_id = excluded.subscription_id, period_start = excluded.period_start,
				period_end = excluded.period_end, plan_key = excluded.plan_key,
				plan_revision = excluded.plan_revision, limits = excluded.limits,
				admitted_at = excluded.admitted_at, lease_expires_at = excluded.lease_expires_at,
				used = excluded.used, concurrent = excluded.concurrent, peak = excluded.peak,
				duration_due_at = excluded.duration_due_at, leased_until = excluded.leased_until, decided = true
			where not e.decided
			returning e.workspace_id, e.usage_epoch, e.outcome, e.peak
		)
		insert into period_usage as p (workspace_id, usage_epoch, used, peak)
		select workspace_id, usage_epoch, count(*) filter (where outcome is distinct from 'not_started'), max(peak)
		from counted group by workspace_id, usage_epoch order by workspace_id, usage_epoch
		on conflict (workspace_id, usage_epoch) do update set
			used = p.used + excluded.used, peak = greatest(p.peak, excluded.peak)`,
		admissionArgs(once(decisions, executionOf)))
}

// queueCompletions notes how executions ended; the first outcome stays. A unit
// is given back where a counted execution turns out not to have started.
func queueCompletions(to *pgx.Batch, completions []Completion) {
	to.Queue(`
		with incoming as (
			select * from unnest(@workspace::text[], @execution::text[], @outcome::text[], @at::timestamptz[])
			as t (workspace_id, execution_id, outcome, completed_at)
		), finished as (
			insert into executions as e (workspace_id, execution_id, outcome, completed_at, decided)
			select workspace_id, execution_id, outcome, completed_at, false from incoming
			order by workspace_id, execution_id
			on conflict (workspace_id, execution_id) do update set
				outcome = excluded.outcome, completed_at = excluded.completed_at
			where e.outcome is null
			returning e.workspace_id, e.usage_epoch, e.outcome, e.decided
		), refunds as (
			select workspace_id, usage_epoch, count(*) as units from finished
			where decided and outcome = 'not_started' group by workspace_id, usage_epoch
		)
		update period_usage p set used = p.used - r.units
		from refunds r where p.workspace_id = r.workspace_id and p.usage_epoch = r.usage_epoch`,
		completionArgs(once(completions, func(c Completion) execution { return execution{c.WorkspaceID, c.ExecutionID} })))
}

// queueRuntime notes the earliest runtime denial of an execution. The denial may
// have been published before the admission was: the row is then not decided yet.
func queueRuntime(to *pgx.Batch, decisions []Decision) {
	to.Queue(`
		insert into executions as e (workspace_id, execution_id, runtime_code, runtime_denied_at, decided)
		select workspace_id, execution_id, code, denied_at, false
		from unnest(@workspace::text[], @execution::text[], @code::int[], @at::timestamptz[])
		as t (workspace_id, execution_id, code, denied_at)
		order by workspace_id, execution_id
		on conflict (workspace_id, execution_id) do update set
			runtime_code = excluded.runtime_code, runtime_denied_at = excluded.runtime_denied_at
		where e.runtime_denied_at is null
			or (excluded.runtime_denied_at, excluded.runtime_code) < (e.runtime_denied_at, e.runtime_code)`,
		runtimeArgs(once(earliestFirst(decisions), executionOf)))
}

// queueDenials adds to the counts per minute, workspace, code and kind.
func queueDenials(to *pgx.Batch, decisions []Decision) error {
	args, err := denialArgs(rollUp(decisions))
	if err != nil {
		return err
	}
	to.Queue(`
		insert into denials as d (minute, workspace_id, code, kind, count, last_decision, last_at)
		select minute, workspace_id, code, kind, count, last_decision::jsonb, last_at
		from unnest(@minute::timestamptz[], @workspace::text[], @code::int[], @kind::text[],
			@count::bigint[], @last_decision::text[], @last_at::timestamptz[])
		as t (minute, workspace_id, code, kind, count, last_decision, last_at)
		order by minute, workspace_id, code, kind
		on conflict (minute, workspace_id, code, kind) do update set
			count = d.count + excluded.count,
			last_decision = case when (excluded.last_at, excluded.last_decision->>'decision_id')
				> (d.last_at, d.last_decision->>'decision_id') then excluded.last_decision else d.last_decision end,
			last_at = greatest(d.last_at, excluded.last_at)`, args)
	return nil
}
