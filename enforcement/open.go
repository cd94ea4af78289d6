package enforcement

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// missingOf is what a reply says that Redis lacks.
func missingOf(reply []any) int {
	if len(reply) > 2 {
		return int(integer(reply[2]))
	}
	return missingWorkspace
}

// open tells Redis what it lacks of each workspace: everything, after a first
// sight or a loss; a period, after a renewal; or just the terms, after a plan
// change. What it loads is what the database knows; a workspace that the database
// has never seen opens empty. It returns the groups that it opened, the others fail.
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
			g.fail(results, fmt.Errorf("read usage of workspace %s: %w: %w", g.workspace, ErrUnavailable, faults[i]))
			continue
		}
		c, err := e.openCall(g, known[i])
		if err != nil {
			g.fail(results, fmt.Errorf("open workspace %s: %w", g.workspace, err))
			continue
		}
		calls, sent = append(calls, c), append(sent, g)
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

func (e *Enforcer) openCall(g *group, known Usage) (*call, error) {
	args := []any{
		e.window, uuid.NewString(), g.terms.UsageEpoch, milliseconds(g.terms.PeriodEnd.UnixMilli()),
		milliseconds(max(known.Used, 0)), milliseconds(max(known.Peak, 0)),
		g.terms.digest, g.terms.packed, milliseconds(g.terms.LeaseMS), milliseconds(int64(g.missing)),
		milliseconds(g.terms.revision), milliseconds(g.terms.fence()),
	}
	if g.missing != missingWorkspace {
		return &call{script: openScript, keys: keys(e.prefix, g.workspace), args: args}, nil
	}
	// What runs since another period is recorded under terms that name that
	// period, so that a unit given back goes where it was taken.
	digests := map[string]string{"": g.terms.digest, g.terms.UsageEpoch: g.terms.digest}
	var leases []any
	for _, l := range known.Leases {
		digest, ok := digests[l.UsageEpoch]
		if !ok {
			earlier := g.terms.snapshot
			earlier.UsageEpoch = l.UsageEpoch
			var packed string
			var err error
			if digest, packed, err = earlier.pack(); err != nil {
				return nil, fmt.Errorf("encode terms of period %s: %w", l.UsageEpoch, err)
			}
			digests[l.UsageEpoch] = digest
			args = append(args, digest, packed, l.UsageEpoch)
		}
		leases = append(leases, l.ExecutionID, milliseconds(l.ExpiresAt.UnixMilli()), digest)
	}
	args = append(append(args, ""), leases...)
	return &call{script: openScript, keys: keys(e.prefix, g.workspace), args: args}, nil
}
