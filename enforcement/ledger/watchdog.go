package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
)

// longestDuration is what counts as no limit: a time that far away is none.
const longestDuration = 100 * 365 * 24 * time.Hour

// durationDue is when the longest duration of an execution passes, nil for never.
func durationDue(d Decision) *time.Time {
	minutes, bounded := d.Limits.MaxExecutionDurationMinutes.Value()
	if !bounded || minutes > int64(longestDuration/time.Minute) {
		return nil
	}
	due := d.DecidedAt.Add(time.Duration(minutes) * time.Minute)
	return &due
}

// Sweep bounds one look of a watchdog.
type Sweep struct {
	// Grace is how long something must be due before it is taken up, by Postgres's clock:
	// that of the machine that looks may be off.
	Grace time.Duration
	// Limit is the most executions to take up.
	Limit int
}

func (s Sweep) args() pgx.NamedArgs { return pgx.NamedArgs{"grace": s.Grace, "limit": s.Limit} }

// Overdue is an open execution that has run for longer than its decision allows.
type Overdue struct {
	// Admission is its decision as far as the ledger keeps it.
	Admission schemas.DecisionMade
	// Now is the time by Postgres's clock.
	Now time.Time
}

// Told is what a look at overdue executions came to.
type Told struct {
	// Published is how many engines were told by it, Known how many had been before.
	Published, Known int
	// More: as many were due as the look may take up, and all of them are done.
	More bool
}

// TellOverdue hands executions that ran too long to tell, the one due longest first, and
// notes those for which tell reports true: they are never handed out again. One that a
// decision told of its duration before is noted without tell. What another look has in
// hand is left to that. The executions stay locked meanwhile, so tell must end within
// seconds; the ledger waits for it where one of them completes.
//
// After an error, or the end of the process, whatever was told is handed out again.
func (s *Store) TellOverdue(ctx context.Context, sweep Sweep, tell func(context.Context, []Overdue) []bool) (Told, error) {
	var told Told
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		due, err := overdue(ctx, tx, sweep)
		if err != nil || len(due) == 0 {
			return err
		}
		var done []execution
		var untold []Overdue
		for _, each := range due {
			if each.known {
				done = append(done, executionOf(Decision{DecisionMade: each.Admission}))
				continue
			}
			untold = append(untold, each.Overdue)
		}
		told.Known = len(done)
		if len(untold) > 0 {
			for i, ok := range tell(ctx, untold) {
				if ok {
					told.Published++
					done = append(done, executionOf(Decision{DecisionMade: untold[i].Admission}))
				}
			}
		}
		told.More = len(done) == sweep.Limit
		return noteTold(ctx, tx, done)
	})
	if err != nil {
		return Told{}, fmt.Errorf("tell overdue executions: %w", err)
	}
	return told, nil
}

type due struct {
	Overdue
	known bool
}

func overdue(ctx context.Context, tx pgx.Tx, sweep Sweep) ([]due, error) {
	args := sweep.args()
	args["code"] = enforcement.CodeDuration
	rows, err := tx.Query(ctx, `
		select workspace_id, execution_id, decision_id, subscription_id::text, period_start, period_end, plan_key,
			plan_revision, limits, admitted_at, used, concurrent, peak, runtime_code is not distinct from @code, now()
		from executions
		where outcome is null and duration_due_at is not null and duration_due_at < now() - @grace::interval
		order by duration_due_at limit @limit
		for update skip locked`, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (due, error) {
		var one due
		d := schemas.DecisionMade{Kind: schemas.KindAdmission, Allowed: true}
		var limits []byte
		err := row.Scan(&d.WorkspaceID, &d.ExecutionID, &d.DecisionID, &d.SubscriptionID, &d.PeriodStart, &d.PeriodEnd, &d.PlanKey,
			&d.PlanRevision, &limits, &d.DecidedAt, &d.Used, &d.Concurrent, &d.Peak, &one.known, &one.Now)
		if err != nil {
			return due{}, err
		}
		if err := json.Unmarshal(limits, &d.Limits); err != nil {
			return due{}, fmt.Errorf("decode limits of execution %s of workspace %s: %w", d.ExecutionID, d.WorkspaceID, err)
		}
		complete(&d)
		one.Admission, one.Now = d, one.Now.UTC()
		return one, nil
	})
}

func noteTold(ctx context.Context, tx pgx.Tx, done []execution) error {
	if len(done) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		update executions e set duration_due_at = null
		from unnest(@workspaces::text[], @executions::text[]) as t (workspace_id, execution_id)
		where e.workspace_id = t.workspace_id and e.execution_id = t.execution_id`,
		pgx.NamedArgs{"workspaces": column(done, workspaceName), "executions": column(done, executionName)})
	return err
}

func workspaceName(e execution) string { return e.workspace }

func executionName(e execution) string { return e.id }
