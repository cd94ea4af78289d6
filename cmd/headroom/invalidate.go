package main

import (
	"context"
	"fmt"
)

// invalidateCmd makes every running instance read a workspace's plan again.
type invalidateCmd struct {
	Workspace string `arg:"" name:"WS" help:"The workspace; it need not be known."`
	output
}

// Help says when that is of use.
func (invalidateCmd) Help() string {
	return "Headroom does so by itself for every change it makes. This is for a change that was made behind its back, and for a person who wants to be sure. " +
		"It raises the workspace's revision and tells every instance, after the commit."
}

// invalidatedView is what came of it.
type invalidatedView struct {
	WorkspaceID string `json:"workspace_id"`
	Revision    int64  `json:"revision"`
}

// Run invalidates and prints the workspace's new revision, 0 for an unknown one.
func (c *invalidateCmd) Run(ctx context.Context, p *program) error {
	if err := checkID("workspace", c.Workspace); err != nil {
		return err
	}
	return p.withAdmin(ctx, func(a *admin) error {
		revision, err := a.subscriptions().Invalidate(ctx, c.Workspace, "headroom invalidate")
		if err != nil {
			return err
		}
		if c.json() {
			return writeIndented(p.stdout, invalidatedView{WorkspaceID: c.Workspace, Revision: revision})
		}
		_, err = fmt.Fprintf(p.stdout, "workspace %s is at revision %d\n", c.Workspace, revision)
		return err
	})
}
