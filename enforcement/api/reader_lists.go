package api

import (
	"context"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
)

// Executions lists the executions of a workspace that run, as Redis knows them: the one
// whose lease ends soonest first, ten thousand at most. It is empty for a workspace that
// nothing runs in. Without Redis nobody knows, and the error wraps
// enforcement.ErrUnavailable.
func (r *Reader) Executions(ctx context.Context, workspace string) ([]ExecutionView, error) {
	if err := checkWorkspace(workspace); err != nil {
		return nil, err
	}
	running, err := r.running(ctx, workspace)
	if err != nil {
		return nil, unread("list executions of workspace "+workspace, err)
	}
	admitted := r.admitted(ctx, workspace, running)
	views := make([]ExecutionView, len(running))
	for i, e := range running {
		views[i] = ExecutionView{ExecutionID: e.ExecutionID, LeaseExpiresAt: e.LeaseExpiresAt, Tasks: e.Tasks, PayloadBytes: e.PayloadBytes}
		if e.SubscriptionID != "" {
			views[i].SubscriptionID = &e.SubscriptionID
		}
		if at, known := admitted[e.ExecutionID]; known && at.Before(e.StartedAt) {
			views[i].StartedAt = &at
		} else if !e.StartedAt.IsZero() {
			views[i].StartedAt = &e.StartedAt
		}
	}
	return views, nil
}

// running reads page after page, each in its own time.
func (r *Reader) running(ctx context.Context, workspace string) ([]enforcement.Running, error) {
	var all []enforcement.Running
	for after := (time.Time{}); len(all) < maxExecutions; {
		asking, cancel := context.WithTimeout(ctx, r.options.RedisTimeout)
		page, err := r.options.Gauge.Running(asking, enforcement.RunningQuery{WorkspaceID: workspace, After: after})
		cancel()
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < enforcement.MaxRunning {
			break
		}
		after = page[len(page)-1].LeaseExpiresAt
	}
	return all[:min(len(all), maxExecutions)], nil
}

// admitted is when executions started, as the ledger knows: Redis, after a loss, only
// knows when it learned of them. Without the ledger Redis's word stands.
func (r *Reader) admitted(ctx context.Context, workspace string, running []enforcement.Running) map[string]time.Time {
	ids := make([]string, len(running))
	for i, e := range running {
		ids[i] = e.ExecutionID
	}
	admitted, err := r.options.Ledger.Admitted(ctx, workspace, ids)
	if err != nil {
		r.options.Log.WarnContext(ctx, "starts of executions are those that redis knows", "workspace", workspace, "error", err)
	}
	return admitted
}

// Subscriptions lists the rows of a workspace's subscriptions with their amendments, the
// newest period first, as many as the limit says and 1 to subscriptions.MaxPageSize. It is empty
// for a workspace that never had any.
func (r *Reader) Subscriptions(ctx context.Context, workspace string, limit int) ([]SubscriptionView, error) {
	if err := checkWorkspace(workspace); err != nil {
		return nil, err
	}
	periods, err := r.options.Store.Subscriptions(ctx, workspace, limit)
	if err != nil {
		return nil, unread("list subscriptions of workspace "+workspace, err)
	}
	return historyOf(periods), nil
}

// Decisions lists what was decided, newest first: a line for each allowed execution, and
// one for the denials of a minute with the same code, which is the last of them. The
// DecidedAt of a page's last one, as Before, asks for the next page.
func (r *Reader) Decisions(ctx context.Context, q ledger.Query) ([]DecisionView, error) {
	if err := checkWorkspace(q.Workspace); err != nil {
		return nil, err
	}
	if q.Execution != "" && !schemas.ValidID(q.Execution) {
		return nil, &usage.InvalidArgument{Field: "execution", Detail: idRule}
	}
	records, err := r.options.Ledger.Decisions(ctx, q)
	if err != nil {
		return nil, unread("list decisions of workspace "+q.Workspace, err)
	}
	return ViewDecisions(records), nil
}

// ViewDecisions is how records are shown, in the order given.
func ViewDecisions(records []ledger.Record) []DecisionView {
	views := make([]DecisionView, len(records))
	for i, record := range records {
		views[i] = ViewDecision(record.Decision)
	}
	return views
}
