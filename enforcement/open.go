package enforcement

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// open tells Redis what it lacks of a workspace: everything, after a first sight
// or a loss; a period, after a renewal; or just the terms, after a plan change.
// What it loads is what the database knows; a workspace that the database has
// never seen opens empty.
func (e *Enforcer) open(ctx context.Context, g *group, reply []any) error {
	var known Usage
	missing := 0
	if len(reply) > 2 {
		missing = int(integer(reply[2]))
	}
	if missing != missingSnapshot {
		var err error
		known, err = e.usage.Usage(ctx, g.workspace, g.terms.UsageEpoch)
		if err != nil {
			return fmt.Errorf("read usage of workspace %s: %w: %w", g.workspace, ErrUnavailable, err)
		}
	}
	args := []any{
		e.window, uuid.NewString(), g.terms.UsageEpoch, milliseconds(g.terms.PeriodEnd.UnixMilli()),
		milliseconds(max(known.Used, 0)), milliseconds(max(known.Peak, 0)),
		g.terms.digest, g.terms.packed, milliseconds(g.terms.LeaseMS),
	}
	if missing == missingWorkspace {
		for _, l := range known.Leases {
			args = append(args, l.ExecutionID, milliseconds(l.ExpiresAt.UnixMilli()))
		}
	}
	c := &call{script: openScript, keys: keys(e.prefix, g.workspace), args: args}
	e.run(ctx, []*call{c})
	if c.err != nil {
		return fmt.Errorf("open workspace %s: %w", g.workspace, c.err)
	}
	return nil
}
