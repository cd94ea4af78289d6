package main

import (
	"context"

	"github.com/headroomhq/headroom/subscriptions"
)

func subscriptionDiagnoses() []diagnosis {
	const service = "subscriptions"
	return []diagnosis{
		{
			"subscriptions.renewals", service, "a period should have been renewed, ended or reviewed more than 15 minutes ago", "more than a minute ago",
			"see that `headroom serve` runs and what its log says of workspaces that cannot be caught up",
		},
		{
			"subscriptions.overdue", service, "", "a period is over without news of the next one; it counts for HEADROOM_OVERDUE_GRACE",
			"see stripe.reachable and stripe.lookups; run `headroom stripe sync`",
		},
		{
			"subscriptions.unresolved", service, "", "a subscription has no price that is in the catalog, so it does not say which plan it is on",
			"add the price to stripe_prices of its plan and run `headroom plans apply`",
		},
		{
			"subscriptions.plans", service, "", "open periods are of plans that have left the catalog: they go on with the terms they have",
			"put their workspaces on another plan, or the plan back into the catalog",
		},
	}
}

func (d *doctor) subscriptionChecks() []examination {
	if d.db == nil {
		return nil
	}
	concerns := func(judge func(subscriptions.Concerns) judgement) func(context.Context) judgement {
		return func(ctx context.Context) judgement {
			is, err := subscriptions.NewStore(d.db.pool, d.config.storeOptions()).Concerns(ctx)
			if err != nil {
				return unread(err)
			}
			return judge(is)
		}
	}
	return []examination{
		{"subscriptions.renewals", concerns(judgeRenewals)},
		{"subscriptions.overdue", concerns(judgeOverdue)},
		{"subscriptions.unresolved", concerns(judgeUnresolved)},
		{"subscriptions.plans", concerns(judgeRemoved)},
	}
}

func judgeRenewals(is subscriptions.Concerns) judgement {
	j := passes("no open period is due")
	if is.Late > 0 {
		j = judged(byAge(is.LateFor, waitWarn, waitFail), "%s due, the first for %s", counted(int(is.Late), "open period"), brief(is.LateFor))
	}
	return j.with("due", is.Late).with("oldest_seconds", is.LateFor.Seconds())
}

func judgeOverdue(is subscriptions.Concerns) judgement {
	j := passes("no period is over without news")
	if is.Overdue > 0 {
		j = warns("%s over without news", counted(int(is.Overdue), "period"))
	}
	return j.with("overdue", is.Overdue)
}

func judgeUnresolved(is subscriptions.Concerns) judgement {
	j := passes("every subscription's plan is known")
	if is.Unresolved > 0 {
		j = warns("%s without a price that is in the catalog", counted(int(is.Unresolved), "subscription"))
	}
	return j.with("unresolved", is.Unresolved)
}

func judgeRemoved(is subscriptions.Concerns) judgement {
	j := passes("%s known, %d of them without a subscription of their own", counted(int(is.Workspaces), "workspace"), is.OnDefault)
	if is.Removed > 0 {
		j = warns("%s of plans that have left the catalog", counted(int(is.Removed), "open period"))
	}
	return j.with("removed", is.Removed).with("workspaces", is.Workspaces).with("on_default", is.OnDefault)
}
