package main

import (
	"context"
	"fmt"

	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/subscriptions"
)

// plansDiffCmd shows what an apply would do.
type plansDiffCmd struct {
	File string `arg:"" help:"The catalog, a YAML file."`
	output
}

// Help says what is counted.
func (plansDiffCmd) Help() string {
	return "Nothing is written. It also counts the workspaces that the catalog would put over a limit: those that have used more than the new one allows, " +
		"and not more than they are allowed now. What is used is known of executions, from the ledger, which is about a second behind, of features and of storage."
}

// Run prints the changes and whom they would put over a limit, or that there are
// none; all of it is status 0.
func (c *plansDiffCmd) Run(ctx context.Context, p *program) error {
	catalog, err := p.readCatalog(c.File)
	if err != nil {
		return err
	}
	return p.withAdmin(ctx, func(a *admin) error {
		diff, err := a.subscriptions().DiffCatalog(ctx, catalog, a.usage())
		if err != nil {
			return err
		}
		if c.json() {
			return writeIndented(p.stdout, diff)
		}
		running, err := printChanges(p, diff.Changes)
		if err != nil {
			return err
		}
		if running > 0 {
			fmt.Fprintln(p.stdout, staying(running))
		}
		for _, change := range diff.Changes {
			for _, over := range change.OverLimit {
				fmt.Fprintln(p.stdout, overText(change.Key, over))
			}
		}
		return nil
	})
}

// countedUsage is what is used of everything that the database counts.
type countedUsage struct {
	*ledger.Store
	*usage.Counters
}

func (a *admin) usage() subscriptions.Usage {
	store := a.subscriptions()
	return countedUsage{ledger.New(a.postgres), usage.New(usage.Options{Pool: a.postgres, Plans: storedPlans{store}, Catalog: store})}
}

// overText says how many, over what, and when.
func overText(plan string, over subscriptions.OverLimit) string {
	when := "at once with --to-running; else the new limit counts from the next period, which begins with nothing used"
	switch over.When {
	case subscriptions.OverAtOnce:
		when = "at once, as the default plan's terms always do"
	case subscriptions.OverNextPeriod:
		when = "at once with --to-running; else from the next period, since what there is goes on"
	}
	return fmt.Sprintf("over %s of %s: %s, %s", over.Limit, plan, counted(int(over.Workspaces), "workspace"), when)
}
