package enforcement

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// Recount is what a workspace's counts were in Redis and what they are since they were
// taken from the ledger.
type Recount struct {
	UsageEpoch    string
	Before, After Outstanding
}

// Drift is how far Redis was off: more than 0 where it counted too much.
type Drift struct {
	Used, Running int64
}

// Drift is how far Redis was off. Where it did not know the workspace there is none.
func (r Recount) Drift() Drift {
	if !r.Before.Open {
		return Drift{}
	}
	return Drift{Used: r.Before.Used - r.After.Used, Running: r.Before.Running - r.After.Running}
}

// Recount takes a workspace's counts anew from the ledger. For RebuildFence and as long
// as the ledger needs to catch up nobody is admitted: what was decided before may still
// be on its way. Executions go on, and what they report in the meantime is counted, so it
// may be a part of the drift. It waits until ctx ends; the workspace is rebuilt with its
// next request then. An error wraps ErrUnavailable or is one of Plans.
func (e *Enforcer) Recount(ctx context.Context, workspace string) (Recount, error) {
	if !schemas.ValidID(workspace) {
		return Recount{}, fmt.Errorf("recount: workspace %q is not an id", workspace)
	}
	fail := func(err error) (Recount, error) {
		return Recount{}, fmt.Errorf("recount workspace %s: %w", workspace, err)
	}
	g := &group{workspace: workspace, members: []member{{}}}
	results := make([]Result, 1)
	if e.plan(ctx, []*group{g}, results); g.terms == nil {
		return fail(results[0].Err)
	}
	r := Recount{UsageEpoch: g.terms.UsageEpoch}
	c := &call{script: shutScript, keys: e.keys(workspace), args: []any{e.window, r.UsageEpoch}}
	if e.run(ctx, []*call{c}); c.err != nil {
		return fail(c.err)
	}
	if len(c.reply) < 5 {
		return fail(fmt.Errorf("reply has %d values, 5 expected", len(c.reply)))
	}
	r.Before = Outstanding{
		Open: integer(c.reply[0]) == 1, Used: integer(c.reply[2]), Peak: integer(c.reply[3]), Running: integer(c.reply[4]),
	}
	for len(e.rebuild(ctx, []*group{g}, results)) == 0 {
		wait, is := errors.AsType[*Rebuilding](results[0].Err)
		if !is {
			return fail(results[0].Err)
		}
		if !rest(ctx, max(wait.After, time.Millisecond)) {
			return fail(fmt.Errorf("%w: %w", ctx.Err(), results[0].Err))
		}
	}
	var err error
	if r.After, err = e.Outstanding(ctx, workspace, r.UsageEpoch); err != nil {
		return fail(err)
	}
	return r, nil
}
