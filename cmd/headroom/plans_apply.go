package main

import (
	"context"
	"fmt"

	"github.com/headroomhq/headroom/subscriptions"
)

// plansApplyCmd makes a catalog the one in force.
type plansApplyCmd struct {
	File      string `arg:"" help:"The catalog, a YAML file."`
	ToRunning bool   `help:"Give running periods the new terms at once, with what they have used."`
	output
}

// Help says what an apply does to whom.
func (plansApplyCmd) Help() string {
	return "Writes a new immutable revision of each plan that changed, and nothing when none did. " +
		"Running periods keep the terms they were opened with, unless --to-running is given; workspaces on the default plan take its new terms within seconds. " +
		"Every fault of the file is printed with its line, and then nothing is applied. " +
		"With --to-running every period that is behind its plan is changed, also one of an earlier apply: a run that was interrupted is finished by the next."
}

// appliedView is what an apply did.
type appliedView struct {
	subscriptions.Applied
	ToRunning *subscriptions.AppliedToRunning `json:"to_running,omitempty"`
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
		view := appliedView{Applied: applied}
		if c.ToRunning {
			if view.ToRunning, err = a.applyToRunning(ctx, applied.Revision); err != nil {
				return err
			}
		}
		if c.json() {
			return writeIndented(p.stdout, view)
		}
		return view.print(p)
	})
}

func (a *admin) applyToRunning(ctx context.Context, revision int64) (*subscriptions.AppliedToRunning, error) {
	done, err := a.subscriptions().ApplyToRunning(ctx, a.progress("workspaces"))
	if err != nil {
		return nil, fmt.Errorf("%w\nCatalog revision %d is in force, and %s of %s changed: run the same command again to finish",
			err, revision, counted(done.Periods, "running period"), counted(done.Workspaces, "workspace"))
	}
	return &done, nil
}

func (v appliedView) print(p *program) error {
	running, err := printChanges(p, v.Changes)
	if err != nil {
		return err
	}
	switch {
	case v.ToRunning != nil:
		fmt.Fprintf(p.stdout, "%s of %s took the new terms\n",
			counted(v.ToRunning.Periods, "running period"), counted(v.ToRunning.Workspaces, "workspace"))
	case running > 0:
		fmt.Fprintln(p.stdout, staying(running))
	}
	_, err = fmt.Fprintf(p.stdout, "catalog revision %d is in force\n", v.Revision)
	return err
}

// printChanges prints a line for each field that changes, and one for each plan
// that comes or goes. It returns how many periods run on these plans.
func printChanges(p *program, changes []subscriptions.PlanChange) (running int64, err error) {
	t := newTable("PLAN", "CHANGE", "FIELD", "FROM", "TO")
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
	return running, t.write(p.stdout, "no changes")
}

// staying says what becomes of periods that run on plans that change.
func staying(periods int64) string {
	if periods == 1 {
		return "1 running period stays on these plans, with the terms of its start until it ends"
	}
	return fmt.Sprintf("%d running periods stay on these plans, with the terms of their start until they end", periods)
}
