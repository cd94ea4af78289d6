package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/ledger"
)

// recountPatience bounds a recount beyond the fence.
const recountPatience = time.Minute

// workspacesRecountCmd takes a workspace's counts anew from the ledger.
type workspacesRecountCmd struct {
	Workspace string `arg:"" name:"WS" help:"The workspace."`
	output
}

// Help tells what it costs.
func (workspacesRecountCmd) Help() string {
	return "Redis takes the workspace's counts anew from the ledger in PostgreSQL. Executions that run go on. New ones wait meanwhile, for " +
		"HEADROOM_REBUILD_FENCE and until the ledger has caught up. The drift is how far Redis was off; completions that arrive meanwhile are a part of it."
}

// recountView is what a recount found.
type recountView struct {
	WorkspaceID string    `json:"workspace_id"`
	UsageEpoch  string    `json:"usage_epoch"`
	Known       bool      `json:"known"`
	Redis       countView `json:"redis"`
	Ledger      countView `json:"ledger"`
	Drift       driftView `json:"drift"`
}

type countView struct {
	Used    int64 `json:"used"`
	Peak    int64 `json:"peak"`
	Running int64 `json:"running"`
}

type driftView struct {
	Used    int64 `json:"used"`
	Running int64 `json:"running"`
}

// Run recounts and prints what it found.
func (c *workspacesRecountCmd) Run(ctx context.Context, p *program) error {
	if err := checkID("workspace", c.Workspace); err != nil {
		return err
	}
	return p.withAdmin(ctx, func(a *admin) error {
		found, err := a.recount(ctx, c.Workspace)
		if err != nil {
			return err
		}
		view := viewRecount(c.Workspace, found)
		if c.json() {
			return writeIndented(p.stdout, view)
		}
		return facts(p.stdout, view.pairs()...)
	})
}

func (a *admin) recount(ctx context.Context, workspace string) (enforcement.Recount, error) {
	ctx, cancel := context.WithTimeout(ctx, a.config.RebuildFence+recountPatience)
	defer cancel()
	client, err := newRedis(a.config)
	if err != nil {
		return enforcement.Recount{}, err
	}
	defer func() { _ = client.Close() }()
	nc, err := connectNATS(a.config, a.log, newNATSState())
	if err != nil {
		return enforcement.Recount{}, err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return enforcement.Recount{}, fmt.Errorf("open jetstream: %w", err)
	}
	book := ledger.New(a.postgres)
	return enforcement.New(enforcement.Options{
		Redis: client, Plans: storedPlans{a.subscriptions()}, Usage: book, Prefix: a.config.RedisPrefix,
		LeaseGrace: a.config.LeaseGrace, LeaseDefault: a.config.LeaseDefault, RebuildFence: a.config.RebuildFence,
		Watermark: consumers.NewWatermark(js, a.config.topology(), book),
	}).Recount(ctx, workspace)
}

func viewRecount(workspace string, r enforcement.Recount) recountView {
	count := func(o enforcement.Outstanding) countView {
		return countView{Used: o.Used, Peak: o.Peak, Running: o.Running}
	}
	drift := r.Drift()
	return recountView{
		WorkspaceID: workspace, UsageEpoch: r.UsageEpoch, Known: r.Before.Open,
		Redis: count(r.Before), Ledger: count(r.After), Drift: driftView{Used: drift.Used, Running: drift.Running},
	}
}

func (v recountView) pairs() [][2]string {
	before := func(n int64) string {
		if !v.Known {
			return "unknown"
		}
		return number(n)
	}
	return [][2]string{
		{"workspace", v.WorkspaceID},
		{"usage epoch", v.UsageEpoch},
		{"used in Redis", before(v.Redis.Used)},
		{"used in the ledger", number(v.Ledger.Used)},
		{"running in Redis", before(v.Redis.Running)},
		{"running in the ledger", number(v.Ledger.Running)},
		{"drift of used", before(v.Drift.Used)},
		{"drift of running", before(v.Drift.Running)},
	}
}
