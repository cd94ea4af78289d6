package main

import (
	"context"
	"errors"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/subscriptions"
)

// workspacesShowCmd shows one workspace.
type workspacesShowCmd struct {
	Workspace string `arg:"" name:"WS" help:"The workspace."`
	output
}

// Help tells where the two usages are from.
func (workspacesShowCmd) Help() string {
	return "A workspace that was never assigned a plan is shown on the default plan. Usage is what Redis counts, which decisions are measured against; " +
		"beside it stands what the ledger in PostgreSQL has recorded, which follows within about a second."
}

// Run reads the plan that holds now, and the usage of its period.
func (c *workspacesShowCmd) Run(ctx context.Context, p *program) error {
	if err := checkID("workspace", c.Workspace); err != nil {
		return err
	}
	return p.withAdmin(ctx, func(a *admin) error {
		view, err := a.view(ctx, c.Workspace)
		if err != nil {
			return err
		}
		if c.json() {
			return writeIndented(p.stdout, view)
		}
		return printWorkspace(p, view)
	})
}

// view reads the workspace, and notes why its usage is not exact.
func (a *admin) view(ctx context.Context, workspace string) (api.WorkspaceView, error) {
	client, err := newRedis(a.config)
	if err != nil {
		return api.WorkspaceView{}, err
	}
	defer func() { _ = client.Close() }()
	store := a.subscriptions()
	view, err := api.NewReader(api.ReaderOptions{
		Store: store, Ledger: ledger.New(a.postgres),
		Gauge:  enforcement.New(enforcement.Options{Redis: client, Prefix: a.config.RedisPrefix}),
		Counts: usage.New(usage.Options{Pool: a.postgres, Plans: storedPlans{store}, Catalog: store}),
	}).Workspace(ctx, workspace)
	switch cause := view.Usage.Cause; {
	case errors.Is(cause, api.ErrPeriodLost):
		a.note("Redis has lost the period, the usage is the ledger's until the next execution.")
	case cause != nil:
		a.note("Redis could not be asked, the usage is the ledger's: %v", cause)
	}
	return view, err
}

// storedPlans reads each plan from the database: a command that ends keeps none.
type storedPlans struct{ store *subscriptions.Store }

func (s storedPlans) Lookup(ctx context.Context, workspace string, at time.Time) (subscriptions.PlanInfo, error) {
	return s.store.PlanInfo(ctx, workspace, at)
}

func (storedPlans) Invalidate(string, int64) {}
