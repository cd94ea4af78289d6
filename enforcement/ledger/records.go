package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
)

// DefaultLimit and MaxLimit bound how many records one Query returns.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// Query asks for a workspace's records.
type Query struct {
	Workspace string
	// Execution, unless empty, leaves out what is not about that execution. Of denials
	// only the last of each line is known, so older ones may be missing.
	Execution string
	// Limit is how many records to return, DefaultLimit if 0 and never over MaxLimit.
	// Those of the same instant as the last one come on top, so that a page
	// never ends between them.
	Limit int
	// Before, unless zero, leaves out what is not older: the At of the last record of
	// a page asks for the next page.
	Before time.Time
}

// Record is one line of the ledger: an allowed execution, or the denials of one
// minute with the same code.
type Record struct {
	// At is when the decision was taken; of several denials, the last.
	At time.Time
	// Count is how many decisions the line stands for, 1 for an allowed one.
	Count int64
	// Decision is the decision, of several denials the last. Of an allowed one
	// Exact, PlanAsOf and what could be derived then and not now is not kept.
	Decision schemas.DecisionMade
	// Outcome is how the execution ended, empty while it has not.
	Outcome     schemas.Outcome
	CompletedAt time.Time
	// RuntimeCode is the denial that told a running execution to stop, 0 for none.
	RuntimeCode     int
	RuntimeDeniedAt time.Time
}

// Decisions are a workspace's records, newest first. What was decided but is not
// folded yet, usually for less than a second, is missing.
func (s *Store) Decisions(ctx context.Context, q Query) ([]Record, error) {
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	q.Limit = min(q.Limit, MaxLimit)
	var records []Record
	err := pgx.BeginTxFunc(ctx, s.pool, oneView, func(tx pgx.Tx) error {
		allowed, err := allowedRecords(ctx, tx, q)
		if err != nil {
			return err
		}
		denied, err := deniedRecords(ctx, tx, q)
		records = append(allowed, denied...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read decisions of workspace %s: %w", q.Workspace, err)
	}
	return q.page(records), nil
}

// page is the newest of the records: the limit, and those of the last one's instant.
func (q Query) page(records []Record) []Record {
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(b.At.Compare(a.At), strings.Compare(a.Decision.DecisionID, b.Decision.DecisionID))
	})
	end := min(len(records), q.Limit)
	for end > 0 && end < len(records) && records[end].At.Equal(records[end-1].At) {
		end++
	}
	return records[:end]
}

func (q Query) args() pgx.NamedArgs {
	args := pgx.NamedArgs{"workspace": q.Workspace, "execution": nil, "before": nil, "limit": q.Limit}
	if q.Execution != "" {
		args["execution"] = q.Execution
	}
	if !q.Before.IsZero() {
		args["before"] = q.Before
	}
	return args
}

func allowedRecords(ctx context.Context, tx pgx.Tx, q Query) ([]Record, error) {
	rows, err := tx.Query(ctx, `
		select execution_id, decision_id, request_event_id, request_event_source, subscription_id::text,
			period_start, period_end, plan_key, plan_revision, limits, admitted_at, lease_expires_at,
			used, concurrent, peak, coalesce(outcome, ''), completed_at, coalesce(runtime_code, 0), runtime_denied_at
		from executions
		where workspace_id = @workspace and decided
			and (@execution::text is null or execution_id = @execution)
			and (@before::timestamptz is null or admitted_at < @before)
		order by admitted_at desc fetch first (@limit::bigint) rows with ties`, q.args())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Record, error) { return scanAllowed(q.Workspace, row) })
}

func scanAllowed(workspace string, row pgx.CollectableRow) (Record, error) {
	d := schemas.DecisionMade{Kind: schemas.KindAdmission, WorkspaceID: workspace, Allowed: true, Exhausted: []string{}}
	r := Record{Count: 1}
	var limits []byte
	var completedAt, deniedAt *time.Time
	err := row.Scan(&d.ExecutionID, &d.DecisionID, &d.RequestEventID, &d.RequestEventSource, &d.SubscriptionID,
		&d.PeriodStart, &d.PeriodEnd, &d.PlanKey, &d.PlanRevision, &limits, &d.DecidedAt, &d.LeaseExpiresAt,
		&d.Used, &d.Concurrent, &d.Peak, &r.Outcome, &completedAt, &r.RuntimeCode, &deniedAt)
	if err != nil {
		return Record{}, err
	}
	if err := json.Unmarshal(limits, &d.Limits); err != nil {
		return Record{}, fmt.Errorf("decode limits of execution %s: %w", d.ExecutionID, err)
	}
	complete(&d)
	r.At, r.CompletedAt, r.RuntimeDeniedAt = d.DecidedAt, instant(completedAt), instant(deniedAt)
	r.Decision = d
	return r, nil
}

// complete derives what an allowed decision says of its limits, and makes its
// instants UTC as the contract has them.
func complete(d *schemas.DecisionMade) {
	d.LimitValue = d.Limits.MaxExecutions.Pointer()
	d.ConcurrentLimit = d.Limits.MaxConcurrentExecutions.Pointer()
	if d.LimitValue != nil {
		remaining := max(*d.LimitValue-d.Used, 0)
		d.Remaining = &remaining
	}
	d.PeriodStart, d.PeriodEnd, d.DecidedAt = d.PeriodStart.UTC(), d.PeriodEnd.UTC(), d.DecidedAt.UTC()
	if d.LeaseExpiresAt != nil {
		at := d.LeaseExpiresAt.UTC()
		d.LeaseExpiresAt = &at
	}
}

func instant(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.UTC()
}

func deniedRecords(ctx context.Context, tx pgx.Tx, q Query) ([]Record, error) {
	rows, err := tx.Query(ctx, `
		select count, last_decision, last_at from denials
		where workspace_id = @workspace
			and (@execution::text is null or last_decision->>'execution_id' = @execution)
			and (@before::timestamptz is null or (minute < @before and last_at < @before))
		order by last_at desc fetch first (@limit::bigint) rows with ties`, q.args())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Record, error) {
		var r Record
		var sample []byte
		if err := row.Scan(&r.Count, &sample, &r.At); err != nil {
			return Record{}, err
		}
		if err := json.Unmarshal(sample, &r.Decision); err != nil {
			return Record{}, fmt.Errorf("decode denial of %s: %w", r.At, err)
		}
		r.At = r.At.UTC()
		return r, nil
	})
}
