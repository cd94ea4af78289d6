package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// usageTimeout bounds how long the command waits for Redis.
const usageTimeout = 3 * time.Second

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
		view, err := a.view(ctx, c.Workspace, time.Now())
		if err != nil {
			return err
		}
		if c.json() {
			return writeIndented(p.stdout, view)
		}
		return view.print(p)
	})
}

func (a *admin) view(ctx context.Context, workspace string, now time.Time) (workspaceView, error) {
	store := a.subscriptions()
	plan, err := store.PlanInfo(ctx, workspace, now)
	if err != nil {
		return workspaceView{}, err
	}
	view, err := known(ctx, store, plan)
	if err != nil {
		return workspaceView{}, err
	}
	recorded, err := ledger.New(a.postgres).Usage(ctx, workspace, plan.UsageEpoch)
	if err != nil {
		return workspaceView{}, err
	}
	folded := usageView{Executions: recorded.Used, Concurrent: int64(len(recorded.Leases)), Peak: recorded.Peak, AsOf: now.UTC()}
	counted, open, err := a.counted(ctx, plan, now)
	switch {
	case err != nil:
		a.note("Redis could not be asked, the usage is the ledger's: %v", err)
		counted = folded
	case !open && recorded.Used > 0:
		a.note("Redis has lost the period, the usage is the ledger's until the next execution.")
		counted = folded
	}
	view.measure(counted, folded)
	return view, nil
}

// known is all of the view but the usage.
func known(ctx context.Context, store *subscriptions.Store, plan subscriptions.PlanInfo) (workspaceView, error) {
	workspace, err := store.Workspace(ctx, plan.WorkspaceID)
	if errors.Is(err, subscriptions.ErrUnknownWorkspace) {
		return viewOf(plan, nil), nil
	}
	if err != nil {
		return workspaceView{}, err
	}
	var row *subscriptionRow
	if s := workspace.Subscription; s != nil && s.ID == plan.SubscriptionID {
		row = rowOf(s)
	}
	view := viewOf(plan, row)
	view.Pinned = pinnedOf(workspace.Pinned)
	overrides, err := store.Overrides(ctx, plan.WorkspaceID)
	if err != nil {
		return workspaceView{}, err
	}
	view.Overrides = overrideViews(overrides)
	periods, err := store.Subscriptions(ctx, plan.WorkspaceID, historyLength)
	if err != nil {
		return workspaceView{}, err
	}
	view.Subscriptions = historyOf(periods)
	for _, period := range view.Subscriptions {
		if period.ID == plan.SubscriptionID {
			view.Changes = period.Changes
		}
	}
	return view, nil
}

// counted is what Redis counts. Open is false for a period that Redis knows nothing
// of, because nothing was used yet or because Redis lost it.
func (a *admin) counted(ctx context.Context, plan subscriptions.PlanInfo, now time.Time) (usage usageView, open bool, err error) {
	client, err := newRedis(a.config)
	if err != nil {
		return usageView{}, false, err
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, usageTimeout)
	defer cancel()
	enforcer := enforcement.New(enforcement.Options{Redis: client, Prefix: a.config.RedisPrefix})
	now = now.UTC()
	held, err := enforcer.Outstanding(ctx, plan.WorkspaceID, plan.UsageEpoch)
	if err != nil {
		return usageView{}, false, err
	}
	return usageView{Executions: held.Used, Concurrent: held.Running, Peak: held.Peak, Exact: true, AsOf: now}, held.Open, nil
}

// print writes the view as a person reads it: what holds, then a line a limit.
func (v workspaceView) print(p *program) error {
	pairs := [][2]string{{"workspace", v.WorkspaceID}, {"plan", fmt.Sprintf("%s (revision %d)", v.PlanKey, v.PlanRevision)}}
	if s := v.Subscription; s != nil {
		pairs = append(pairs, [2]string{"subscription", fmt.Sprintf("%s (%s, %s)", s.ID, s.Source, s.Status)})
	} else {
		pairs = append(pairs, [2]string{"subscription", "none, on the default plan"})
	}
	if v.Pinned != nil {
		pairs = append(pairs, [2]string{"pinned", v.Pinned.Source + " " + v.Pinned.SourceID})
	}
	pairs = append(pairs, [2]string{"period", v.periodText()})
	if v.Subscription != nil {
		pairs = append(pairs, v.Subscription.ahead()...)
	}
	pairs = append(pairs,
		[2]string{"quota lasts", quotaText(v.QuotaInterval)},
		[2]string{"executions", usageText(v.Usage.Executions, v.Ledger.Executions)},
		[2]string{"running", usageText(v.Usage.Concurrent, v.Ledger.Concurrent)},
		[2]string{"peak", usageText(v.Usage.Peak, v.Ledger.Peak)})
	for _, over := range v.OverLimit {
		pairs = append(pairs, [2]string{"over limit", fmt.Sprintf("%s: %d of %d", over.Limit, over.Used, over.Value)})
	}
	if err := facts(p.stdout, pairs...); err != nil {
		return err
	}
	fmt.Fprintln(p.stdout)
	t := newTable("LIMIT", "VALUE", "FROM")
	for _, name := range schemas.LimitNames {
		t.add(name, schemas.LimitFrom(v.Limits[name].Value).String(), v.Limits[name].From)
	}
	for _, name := range sortedKeys(v.Features) {
		t.add("feature "+name, schemas.LimitFrom(v.Features[name].Limit).String(), v.Features[name].From)
	}
	if err := t.write(p.stdout, "no limits"); err != nil {
		return err
	}
	if len(v.Overrides) > 0 {
		fmt.Fprintln(p.stdout)
		if err := overrideTable(v.Overrides).write(p.stdout, ""); err != nil {
			return err
		}
	}
	return printHistory(p.stdout, v.Subscriptions)
}

// periodText is the period that decisions are measured against. One on a test clock is
// shown as it is there; decisions have it reach to today.
func (v workspaceView) periodText() string {
	if s := v.Subscription; s != nil && s.TestClock {
		return instant(s.PeriodStart) + " to " + instant(s.PeriodEnd) + " (on a test clock)"
	}
	return instant(v.PeriodStart) + " to " + instant(v.PeriodEnd)
}

func quotaText(interval string) string {
	if interval == "" {
		return "as long as the period"
	}
	return "a " + interval
}

func usageText(counted, folded int64) string {
	return fmt.Sprintf("%d (ledger %d)", counted, folded)
}
