package main

import (
	"context"
	"fmt"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/ledger"
)

// workspacesLeaksCmd lists executions whose lease ended without a completion.
type workspacesLeaksCmd struct {
	Workspace string `arg:"" optional:"" name:"WS" help:"The workspace; all of them unless given."`
	Limit     int    `help:"How many at most, 1 to 1000; ${default} unless given." default:"100" placeholder:"N"`
	output
}

// Help says what a leak is, and that it holds nothing.
func (workspacesLeaksCmd) Help() string {
	return "A leak is an execution that was allowed, whose lease has ended, and that nobody has said to be over. It holds no slot any more: " +
		"that was freed when the lease ended. It tells of an engine that died or forgot its execution.completed. " +
		"A completion that comes after all takes it off the list, and so does \"headroom workspaces release\"."
}

// leakView is one leak.
type leakView struct {
	WorkspaceID string    `json:"workspace_id"`
	ExecutionID string    `json:"execution_id"`
	PlanKey     string    `json:"plan_key"`
	StartedAt   time.Time `json:"started_at"`
	// LeaseExpiredAt is when its slot was freed, LeakedAt when the watchdog found it.
	LeaseExpiredAt time.Time `json:"lease_expired_at"`
	LeakedAt       time.Time `json:"leaked_at"`
	// StoppedWith is the denial that it was told to stop with, null for none.
	StoppedWith *int `json:"stopped_with"`
}

// Run prints the leaks, by workspace and the newest first.
func (c *workspacesLeaksCmd) Run(ctx context.Context, p *program) error {
	if c.Workspace != "" {
		if err := checkID("workspace", c.Workspace); err != nil {
			return err
		}
	}
	if c.Limit < 1 || c.Limit > ledger.MaxLimit {
		return &usageError{Err: fmt.Errorf("--limit %d: must be 1 to %d", c.Limit, ledger.MaxLimit)}
	}
	return p.withAdmin(ctx, func(a *admin) error {
		leaks, err := ledger.New(a.postgres).Leaks(ctx, ledger.LeakQuery{Workspace: c.Workspace, Limit: c.Limit})
		if err != nil {
			return err
		}
		if len(leaks) == c.Limit {
			p.note("There may be more: --limit shows up to %d.", ledger.MaxLimit)
		}
		if c.json() {
			return writeIndented(p.stdout, viewLeaks(leaks))
		}
		t := newTable("WORKSPACE", "EXECUTION", "PLAN", "STARTED", "LEASE ENDED", "STOPPED WITH")
		for _, l := range leaks {
			t.add(l.WorkspaceID, l.ExecutionID, l.PlanKey, instant(l.AdmittedAt), instant(l.LeasedUntil), stoppedText(l.RuntimeCode))
		}
		return t.write(p.stdout, "no leaks")
	})
}

func viewLeaks(leaks []ledger.Leak) []leakView {
	views := make([]leakView, len(leaks))
	for i, l := range leaks {
		views[i] = leakView{
			WorkspaceID: l.WorkspaceID, ExecutionID: l.ExecutionID, PlanKey: l.PlanKey,
			StartedAt: l.AdmittedAt, LeaseExpiredAt: l.LeasedUntil, LeakedAt: l.LeakedAt,
		}
		if code := l.RuntimeCode; code != 0 {
			views[i].StoppedWith = &code
		}
	}
	return views
}

func stoppedText(code int) string {
	if code == 0 {
		return "-"
	}
	return fmt.Sprintf("%d %s", code, enforcement.CodeName(code))
}
