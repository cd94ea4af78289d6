package main

import (
	"context"
	"fmt"

	"github.com/headroomhq/headroom/subscriptions"
)

// plansApplyCmd makes a catalog the one in force.
type plansApplyCmd struct {
	File string `arg:"" help:"The catalog, a YAML file."`
	output
}

// Help says what an apply does to whom.
func (plansApplyCmd) Help() string {
	return "Writes a new immutable revision of each plan that changed, and nothing when none did. " +
		"Running periods keep the terms they were opened with; workspaces on the default plan take its new terms within seconds. " +
		"Every fault of the file is printed with its line, and then nothing is applied."
}

// Run applies the file and prints what changed.
func (c *plansApplyCmd) Run(ctx context.Context, p *program) error {
	catalog, err := p.readCatalog(c.File)
	if err != nil {
		return err
	}
	return p.withAdmin(ctx, func(a *admin) error {
		applied, err := a.subscriptions().ApplyCatalog(ctx, catalog)
		if err != nil {
			return err
		}
		if c.json() {
			return writeIndented(p.stdout, applied)
		}
		if err := printChanges(p, applied.Changes); err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "catalog revision %d is in force\n", applied.Revision)
		return err
	})
}

// plansDiffCmd shows what an apply would do.
type plansDiffCmd struct {
	File string `arg:"" help:"The catalog, a YAML file."`
	output
}

// Run prints the changes, or that there are none; both are status 0.
func (c *plansDiffCmd) Run(ctx context.Context, p *program) error {
	catalog, err := p.readCatalog(c.File)
	if err != nil {
		return err
	}
	return p.withAdmin(ctx, func(a *admin) error {
		diff, err := a.subscriptions().DiffCatalog(ctx, catalog)
		if err != nil {
			return err
		}
		if c.json() {
			return writeIndented(p.stdout, diff)
		}
		return printChanges(p, diff.Changes)
	})
}

// printChanges prints a line for each field that changes, and one for each plan
// that comes or goes.
func printChanges(p *program, changes []subscriptions.PlanChange) error {
	t := newTable("PLAN", "CHANGE", "FIELD", "FROM", "TO")
	running := int64(0)
	for _, change := range changes {
		switch change.Kind {
		case subscriptions.PlanUnchanged:
			continue
		case subscriptions.PlanChanged:
			for _, field := range change.Fields {
				t.add(change.Key, string(change.Kind), field.Field, dash(field.From), dash(field.To))
			}
		default:
			t.add(change.Key, string(change.Kind), "-", "-", "-")
		}
		running += change.Running
	}
	if err := t.write(p.stdout, "no changes"); err != nil || running == 0 {
		return err
	}
	_, err := fmt.Fprintf(p.stdout, "%s these plans, with the terms of their start until they end\n", runningOn(running))
	return err
}

func runningOn(periods int64) string {
	if periods == 1 {
		return "1 running period stays on"
	}
	return fmt.Sprintf("%d running periods stay on", periods)
}
