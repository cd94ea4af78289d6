package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/subscriptions"
)

// workspacesCmd is workspaces and the plans they are on.
type workspacesCmd struct {
	List     workspacesListCmd     `cmd:"" help:"List the workspaces that were ever given a plan or an override."`
	Show     workspacesShowCmd     `cmd:"" help:"Show a workspace's plan, period, limits and usage."`
	Assign   workspacesAssignCmd   `cmd:"" help:"Put a workspace on a plan by hand."`
	Override workspacesOverrideCmd `cmd:"" help:"Give a workspace limits and features that are not its plan's."`
	Release  workspacesReleaseCmd  `cmd:"" help:"Free the slot of an execution whose engine is gone."`
	Leaks    workspacesLeaksCmd    `cmd:"" help:"List executions whose lease ended without a completion."`
	Recount  workspacesRecountCmd  `cmd:"" help:"Take a workspace's counts in Redis anew from the ledger."`
}

// workspacesListCmd lists workspaces by id.
type workspacesListCmd struct {
	After string `help:"Begin behind this workspace: the last one of the page before." placeholder:"WS"`
	Limit int    `help:"How many at most, 1 to 1000; ${default} unless given." default:"100" placeholder:"N"`
	output
}

// workspaceItem is one workspace of the listing.
type workspaceItem struct {
	WorkspaceID  string               `json:"workspace_id"`
	Revision     int64                `json:"revision"`
	Subscription *api.SubscriptionRow `json:"subscription"`
}

// Run prints a page of the listing, and on stderr how to get the next one.
func (c *workspacesListCmd) Run(ctx context.Context, p *program) error {
	if c.Limit < 1 || c.Limit > subscriptions.MaxPageSize {
		return &usageError{Err: fmt.Errorf("--limit %d: must be 1 to %d", c.Limit, subscriptions.MaxPageSize)}
	}
	return p.withAdmin(ctx, func(a *admin) error {
		workspaces, err := a.subscriptions().Workspaces(ctx, subscriptions.Page{After: c.After, Limit: c.Limit})
		if err != nil {
			return err
		}
		if err := c.print(p, workspaces); err != nil || len(workspaces) < c.Limit {
			return err
		}
		last := workspaces[len(workspaces)-1].ID
		more, err := a.subscriptions().Workspaces(ctx, subscriptions.Page{After: last, Limit: 1})
		if err == nil && len(more) > 0 {
			p.note("There are more: add --after %s for the next page.", last)
		}
		return err
	})
}

func (c *workspacesListCmd) print(p *program, workspaces []subscriptions.Workspace) error {
	if c.json() {
		items := make([]workspaceItem, len(workspaces))
		for i, w := range workspaces {
			items[i] = workspaceItem{WorkspaceID: w.ID, Revision: w.Revision, Subscription: api.ViewSubscription(w.Subscription)}
		}
		return writeIndented(p.stdout, items)
	}
	t := newTable("WORKSPACE", "PLAN", "SOURCE", "STATUS", "PERIOD START", "PERIOD END", "REVISION")
	for _, w := range workspaces {
		t.add(workspaceCells(w)...)
	}
	return t.write(p.stdout, "no workspaces")
}

func workspaceCells(w subscriptions.Workspace) []string {
	s := w.Subscription
	if s == nil {
		return []string{w.ID, "-", "-", "-", "-", "-", number(w.Revision)}
	}
	return []string{w.ID, s.PlanKey, string(s.Source), s.Status, instant(s.PeriodStart), instant(s.PeriodEnd), number(w.Revision)}
}

// workspacesAssignCmd puts a workspace on a plan by hand.
type workspacesAssignCmd struct {
	Workspace string `arg:"" name:"WS" help:"The workspace; it need not be known."`
	Plan      string `required:"" placeholder:"KEY" help:"The plan's key."`
	Source    string `enum:"enterprise,system" default:"enterprise" placeholder:"enterprise|system" help:"Who decides about the subscription: ${enum}."`
	Interval  string `placeholder:"month|year|Nd|Nh|Nm" help:"How long a period is. Unless given: that of the open period, or a month."`
	Start     string `placeholder:"T" help:"When the periods began, as RFC 3339 or YYYY-MM-DD (UTC). Unless given: that of the open period, or now."`
	NewPeriod bool   `help:"Close the open period now and open one with a fresh quota."`
	// A trial is described in docs/subscriptions.md.
	Trial      string `placeholder:"Nd|Nh|Nm|month" help:"Begin with a trial this long, or make the open trial this long in all."`
	AfterTrial string `placeholder:"convert|expire|default" help:"What becomes of the trial: convert goes on with the plan, expire ends the subscription, default goes on with the default plan. Unless given: that of the open trial, or convert."`
	output
}

// Help says what happens to an open period.
func (workspacesAssignCmd) Help() string {
	return "On an open period of the same source it changes the terms and keeps what was used; with --new-period it opens another one, with a fresh quota. " +
		"Running instances of Headroom are told at once."
}

// Run assigns, tells running instances, and prints the period row.
func (c *workspacesAssignCmd) Run(ctx context.Context, p *program) error {
	if err := checkID("workspace", c.Workspace); err != nil {
		return err
	}
	assignment, err := c.assignment()
	if err != nil {
		return &usageError{Err: err}
	}
	return p.withAdmin(ctx, func(a *admin) error {
		subscription, err := a.subscriptions().Assign(ctx, assignment)
		if errors.Is(err, subscriptions.ErrInvalidAssignment) {
			return &usageError{Err: err}
		}
		if err != nil {
			return err
		}
		row := api.ViewSubscription(&subscription)
		if c.json() {
			return writeIndented(p.stdout, row)
		}
		return facts(p.stdout, rowPairs(row)...)
	})
}

// assignment reads the flags, so that a fault is heard of before anything is
// connected to.
func (c *workspacesAssignCmd) assignment() (subscriptions.Assignment, error) {
	assignment := subscriptions.Assignment{
		WorkspaceID: c.Workspace, PlanKey: c.Plan, Source: subscriptions.Source(c.Source),
		Interval: c.Interval, NewPeriod: c.NewPeriod, Trial: c.Trial, AfterTrial: c.AfterTrial, Cause: "headroom workspaces assign",
	}
	if err := c.checkTrial(); err != nil {
		return assignment, err
	}
	if c.Interval != "" {
		if _, err := subscriptions.ParseInterval(c.Interval); err != nil {
			return assignment, err
		}
	}
	if c.Start != "" {
		start, err := parseInstant(c.Start)
		if err != nil {
			return assignment, fmt.Errorf("--start: %w", err)
		}
		assignment.Start = &start
	}
	return assignment, nil
}

func (c *workspacesAssignCmd) checkTrial() error {
	if c.Trial != "" {
		if _, err := subscriptions.ParseInterval(c.Trial); err != nil {
			return fmt.Errorf("--trial: %w", err)
		}
	}
	if c.AfterTrial != "" && !slices.Contains(subscriptions.AfterTrials(), c.AfterTrial) {
		return fmt.Errorf("--after-trial %q: must be convert, expire or default", c.AfterTrial)
	}
	return nil
}
