package proof_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

const (
	instances = 10
	quota     = 400 // of workspace "busy", a period
	ended     = 250 // of its executions end before the boundary
	slots     = 20  // of workspace "crowded", whose executions run across the boundary
	freed     = 5   // of these, after it
	ahead     = 3 * time.Second
)

func TestABoundaryUnderLoadChargesEachPeriodAtMostItsLimit(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{key: "busy", quota: quota}, plan{key: "crowded", parallel: slots})
	for _, ws := range []string{"busy", "crowded"} {
		h.assign(subscriptions.Assignment{WorkspaceID: ws, PlanKey: ws})
	}
	all := make([]*instance, instances)
	for i := range all {
		all[i] = h.start()
	}
	load := h.ask(200, "busy", "busy", "crowded")
	load.until(quota, "busy is allowed", func(d schemas.DecisionMade) bool { return d.WorkspaceID == "busy" && d.Allowed })
	load.until(300, "busy is refused", func(d schemas.DecisionMade) bool {
		return d.WorkspaceID == "busy" && d.Code == enforcement.CodeExecutionQuota
	})
	load.until(100, "crowded is refused", func(d schemas.DecisionMade) bool { return d.Code == enforcement.CodeConcurrency })
	first := map[string]string{}
	for ws, n := range map[string]int{"busy": ended, "crowded": 0} {
		row := h.row(ws)
		first[ws] = row.ID
		h.complete(ws, load.allowed(row.ID)[:n]...)
	}
	h.eventually("the completions are heard", func() bool { return h.counted(all[0], "busy", first["busy"]).Running == quota-ended })

	// The boundary is drawn a few seconds from here, while requests go on.
	start := time.Now().Add(ahead - time.Minute)
	for ws := range first {
		h.assign(subscriptions.Assignment{WorkspaceID: ws, PlanKey: ws, Interval: "1m", Start: &start})
	}
	beyond := func(d schemas.DecisionMade) bool {
		return d.SubscriptionID != nil && *d.SubscriptionID != first[d.WorkspaceID]
	}
	load.until(quota, "busy is allowed beyond the boundary", func(d schemas.DecisionMade) bool { return beyond(d) && d.WorkspaceID == "busy" && d.Allowed })
	load.until(300, "busy is refused beyond it", func(d schemas.DecisionMade) bool { return beyond(d) && d.WorkspaceID == "busy" && !d.Allowed })
	load.until(100, "crowded is refused beyond it", func(d schemas.DecisionMade) bool { return beyond(d) && d.WorkspaceID == "crowded" && !d.Allowed })
	h.complete("crowded", load.allowed(first["crowded"])[:freed]...)
	load.until(freed, "crowded is allowed beyond it", func(d schemas.DecisionMade) bool { return beyond(d) && d.WorkspaceID == "crowded" && d.Allowed })
	load.halt()
	h.folded()

	c := h.check(all[0])
	for ws, limit := range map[string]int{"busy": quota, "crowded": slots} {
		if got := len(c.charged[first[ws]]); got != limit {
			t.Errorf("%s: %d executions were charged to the first period, want %d", ws, got, limit)
		}
	}
	if d := c.firstOf("busy", first["busy"]); d.Concurrent != quota-ended+1 || d.Peak != quota-ended+1 {
		t.Errorf("the first execution of the new period is number %d of a peak of %d, want both to be the %d that run and itself",
			d.Concurrent, d.Peak, quota-ended)
	}
	for i, each := range all {
		if each.Stats().Allowed()+each.Stats().Denied() == 0 {
			t.Errorf("instance %d decided nothing", i)
		}
	}
	t.Logf("%d decisions by %d instances over %d periods", c.decisions, instances, len(c.charged))
}

// checked is what the decisions say, once they were compared with the ledger and Redis.
type checked struct {
	decisions int
	// charged is the admissions of each period's row.
	charged map[string][]schemas.DecisionMade
}

// firstOf is the first admission of a workspace's period after the given one.
func (c checked) firstOf(ws, before string) schemas.DecisionMade {
	for id, all := range c.charged {
		for _, d := range all {
			if id != before && d.WorkspaceID == ws && d.Used == 1 {
				return d
			}
		}
	}
	return schemas.DecisionMade{}
}

// check holds what is true of any decisions of any periods against the stream.
func (h *house) check(i *instance) checked {
	h.Helper()
	c := checked{charged: make(map[string][]schemas.DecisionMade)}
	once := make(map[string]bool)
	units := make(map[string]map[int64]bool)
	for _, d := range h.decisions() {
		c.decisions++
		if once[d.ExecutionID] {
			h.Errorf("execution %s was decided twice", d.ExecutionID)
		}
		once[d.ExecutionID] = true
		if d.DecidedAt.Before(d.PeriodStart) || !d.DecidedAt.Before(d.PeriodEnd) {
			h.Errorf("execution %s was decided %s, outside of its period %s to %s", d.ExecutionID, d.DecidedAt, d.PeriodStart, d.PeriodEnd)
		}
		if d.Limits.MaxExecutions.Exceeded(d.Used) && d.Allowed || d.Limits.MaxConcurrentExecutions.Exceeded(d.Concurrent) {
			h.Errorf("execution %s goes over a limit: %+v", d.ExecutionID, d)
		}
		if !d.Allowed {
			continue
		}
		id := *d.SubscriptionID
		if units[id] == nil {
			units[id] = make(map[int64]bool)
		}
		if units[id][d.Used] {
			h.Errorf("unit %d of period %s was given out twice", d.Used, id)
		}
		units[id][d.Used] = true
		c.charged[id] = append(c.charged[id], d)
	}
	for id, charged := range c.charged {
		h.compare(i, id, charged)
	}
	return c
}

// compare holds a period's admissions against the ledger and Redis.
func (h *house) compare(i *instance, id string, charged []schemas.DecisionMade) {
	h.Helper()
	ws, n := charged[0].WorkspaceID, int64(len(charged))
	if charged[0].Limits.MaxExecutions.Exceeded(n) {
		h.Errorf("period %s of %s was charged %d executions, more than its limit", id, ws, n)
	}
	rows, err := h.pool.Query(context.Background(), `
		SELECT (SELECT count(*) FROM executions WHERE workspace_id = $1 AND usage_epoch = $2),
			(SELECT used FROM period_usage WHERE workspace_id = $1 AND usage_epoch = $2)`, ws, id)
	if err != nil {
		h.Fatal(err)
	}
	type folded struct{ Executions, Used int64 }
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[folded])
	if err != nil {
		h.Fatal(err)
	}
	if diff := cmp.Diff(folded{n, n}, got); diff != "" {
		h.Errorf("ledger of period %s of %s (-decisions +ledger):\n%s", id, ws, diff)
	}
	if redis := h.counted(i, ws, id); redis.Used != n {
		h.Errorf("Redis has %d used in period %s of %s, the decisions charge %d", redis.Used, id, ws, n)
	}
}

func (h *house) row(ws string) subscriptions.Subscription {
	h.Helper()
	found, err := h.store.Workspace(context.Background(), ws)
	if err != nil {
		h.Fatal(err)
	}
	return *found.Subscription
}

func (h *house) counted(i *instance, ws, epoch string) enforcement.Outstanding {
	h.Helper()
	got, err := i.enforcer.Outstanding(context.Background(), ws, epoch)
	if err != nil {
		h.Fatal(err)
	}
	return got
}

// allowed is the executions seen so far that were admitted in a period.
func (l *load) allowed(row string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []string
	for _, d := range l.seen {
		if d.Allowed && d.SubscriptionID != nil && *d.SubscriptionID == row {
			ids = append(ids, d.ExecutionID)
		}
	}
	return ids
}
