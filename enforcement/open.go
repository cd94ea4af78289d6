package enforcement

import (
	"context"
	"fmt"
	"slices"
)

// missingOf is what a reply says that Redis lacks.
func missingOf(reply []any) int {
	if len(reply) > 2 {
		return int(integer(reply[2]))
	}
	return missingWorkspace
}

// supply tells Redis what it lacks of each workspace: everything, after a first
// sight or a loss; a period, after a renewal; or just the terms, after a plan
// change. It returns the groups to ask again, the others fail.
func (e *Enforcer) supply(ctx context.Context, all []*group, results []Result) []*group {
	var lost, shut []*group
	for _, g := range all {
		if g.missing == missingWorkspace {
			lost = append(lost, g)
		} else {
			shut = append(shut, g)
		}
	}
	// Piece by piece: where ctx has no time for all, the next caller finds some open.
	var again []*group
	for piece := range slices.Chunk(shut, 4*readers) {
		again = append(again, e.open(ctx, piece, results)...)
	}
	return append(again, e.rebuild(ctx, lost, results)...)
}

// open tells Redis of a period or terms. What it loads is what the database knows. It
// returns the groups that it opened, the others fail.
func (e *Enforcer) open(ctx context.Context, all []*group, results []Result) []*group {
	known := make([]Usage, len(all))
	faults := make([]error, len(all))
	inParallel(len(all), func(i int) {
		if g := all[i]; g.missing != missingSnapshot {
			known[i], faults[i] = e.usage.Usage(ctx, g.workspace, g.terms.UsageEpoch)
		}
	})
	var calls []*call
	var sent []*group
	for i, g := range all {
		if faults[i] != nil {
			g.fail(results, unreadUsage(g.workspace, faults[i]))
			continue
		}
		calls, sent = append(calls, e.openCall(g, known[i])), append(sent, g)
	}
	if len(calls) > 0 {
		e.run(ctx, calls)
	}
	var opened []*group
	for i, g := range sent {
		if err := calls[i].err; err != nil {
			g.fail(results, fmt.Errorf("open workspace %s: %w", g.workspace, err))
			continue
		}
		opened = append(opened, g)
	}
	return opened
}

func unreadUsage(workspace string, err error) error {
	return fmt.Errorf("read usage of workspace %s: %w: %w", workspace, ErrUnavailable, err)
}

func (e *Enforcer) openCall(g *group, known Usage) *call {
	return &call{script: openScript, keys: e.keys(g.workspace), args: []any{
		e.window, g.terms.UsageEpoch, milliseconds(g.terms.PeriodEnd.UnixMilli()),
		milliseconds(max(known.Used, 0)), milliseconds(max(known.Peak, 0)),
		g.terms.digest, g.terms.packed, milliseconds(g.terms.LeaseMS), milliseconds(int64(g.missing)),
		milliseconds(g.terms.revision), milliseconds(g.terms.fence()),
	}}
}
