package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// plansCmd is the plan catalog.
type plansCmd struct {
	Apply plansApplyCmd `cmd:"" help:"Make a catalog file the one in force."`
	Diff  plansDiffCmd  `cmd:"" help:"Show what applying a catalog file would change."`
	List  plansListCmd  `cmd:"" help:"List the plans in force with their limits."`
	Show  plansShowCmd  `cmd:"" help:"Show one plan: limits, features and its earlier revisions."`
}

// plansListCmd lists the catalog in force.
type plansListCmd struct {
	output
}

// Run prints the plans by rank.
func (c *plansListCmd) Run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *admin) error {
		plans, err := a.subscriptions().Plans(ctx)
		if err != nil {
			return err
		}
		if c.json() {
			return writeIndented(p.stdout, list(plans))
		}
		t := newTable(append([]string{"PLAN", "DEFAULT", "RANK", "REVISION"}, limitHeads()...)...)
		for _, plan := range plans {
			t.add(append([]string{plan.Key, mark(plan.Default), strconv.Itoa(int(plan.Rank)), number(plan.Revision)}, limitCells(plan.Limits)...)...)
		}
		return t.write(p.stdout, "no plans; apply a catalog with \"headroom plans apply FILE\"")
	})
}

// plansShowCmd shows one plan.
type plansShowCmd struct {
	Key string `arg:"" help:"The plan's key."`
	output
}

// planShown is a revision of a plan; with the newest one stand the policies that
// its periods are subject to.
type planShown struct {
	subscriptions.PlanRevision
	Policies *policiesView `json:"policies,omitempty"`
}

// Run prints the newest revision in full with the policies in force, and the
// earlier ones in short; -o json prints all of them, newest first.
func (c *plansShowCmd) Run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *admin) error {
		revisions, err := a.subscriptions().Plan(ctx, c.Key)
		if err != nil {
			return err
		}
		policies := a.config.policies()
		if c.json() {
			return writeIndented(p.stdout, plansShown(revisions, policies))
		}
		if err := printPlan(p, revisions[0], policies); err != nil {
			return err
		}
		fmt.Fprintln(p.stdout)
		t := newTable(append([]string{"REVISION", "APPLIED AT", "REMOVED"}, limitHeads()...)...)
		for _, r := range revisions {
			t.add(append([]string{number(r.Revision), instant(r.CreatedAt), mark(r.Removed)}, limitCells(r.Limits)...)...)
		}
		return t.write(p.stdout, "")
	})
}

func plansShown(revisions []subscriptions.PlanRevision, policies policiesView) []planShown {
	shown := make([]planShown, len(revisions))
	for i, r := range revisions {
		shown[i].PlanRevision = r
	}
	shown[0].Policies = &policies
	return shown
}

func printPlan(p *program, plan subscriptions.PlanRevision, policies policiesView) error {
	pairs := [][2]string{
		{"plan", plan.Key},
		{"revision", number(plan.Revision)},
		{"default", strconv.FormatBool(plan.Default)},
		{"rank", strconv.Itoa(int(plan.Rank))},
		{"removed", strconv.FormatBool(plan.Removed)},
		{"stripe prices", dash(strings.Join(plan.StripePrices, ", "))},
		{"quota interval", dash(plan.QuotaInterval)},
	}
	for _, name := range schemas.LimitNames {
		pairs = append(pairs, [2]string{name, plan.Limits.Named(name).String()})
	}
	for _, feature := range plan.Named() {
		value, included := plan.Features[feature]
		pairs = append(pairs, [2]string{"feature " + feature, featureText(plan.KindOf(feature), value, included)})
	}
	return facts(p.stdout, append(pairs, policies.pairs()...)...)
}

// featureText is how much of a feature there is, and what it is measured by where
// that is not what there is.
func featureText(kind subscriptions.FeatureKind, value schemas.Limit, included bool) string {
	switch {
	case kind == subscriptions.FeatureBoolean:
		return kind.Text(value)
	case !included:
		return "not included"
	case kind == subscriptions.FeatureFlow:
		return value.String() + " in a quota period"
	default:
		return value.String()
	}
}

// readCatalog reads a catalog file. Its faults go to stderr, a line each, in
// the form that editors jump to; the error only counts them.
func (p *program) readCatalog(path string) (subscriptions.Catalog, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return subscriptions.Catalog{}, fmt.Errorf("read the catalog: %w", err)
	}
	catalog, err := subscriptions.ParseCatalog(path, body)
	if faulty, ok := errors.AsType[*subscriptions.CatalogError](err); ok {
		p.note("%v", faulty)
		return subscriptions.Catalog{}, fmt.Errorf("read the catalog: %s has %s", path, counted(len(faulty.Faults), "fault"))
	}
	return catalog, err
}

// subscriptions is the store of plans and periods, with the policies of the settings.
func (a *admin) subscriptions() *subscriptions.Store {
	return subscriptions.NewStore(a.postgres, a.config.storeOptions())
}

func (c Config) storeOptions() subscriptions.StoreOptions {
	return subscriptions.StoreOptions{DenyUnknown: c.UnknownWorkspace == unknownDeny, Policy: c.policy()}
}

// limitHeads are the short names of the limits, in the order of limitCells.
func limitHeads() []string {
	return []string{"EXECUTIONS", "CONCURRENT", "TASKS", "MINUTES", "PAYLOAD MB", "STORAGE MB", "PER MINUTE"}
}

func limitCells(limits schemas.Limits) []string {
	cells := make([]string, 0, len(schemas.LimitNames))
	for _, name := range schemas.LimitNames {
		cells = append(cells, limits.Named(name).String())
	}
	return cells
}
