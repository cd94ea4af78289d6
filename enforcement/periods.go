package enforcement

import (
	"context"
	"fmt"

	"github.com/headroomhq/headroom/schemas"
)

// OpenPeriods opens the present period of each workspace in Redis before anybody
// asks for an execution in it: with the usage that the database knows, which is none
// unless it carries over, and a peak of what is running. The plan is Plans' to know:
// invalidate what is cached first. The results are in the order given.
//
// It may be repeated, and called by any number of processes at once. Nothing changes
// where the period is open, where Redis has seen a newer plan, and where Redis
// does not know the workspace: its first request opens it then, with all that runs.
//
// An error is nil, wraps ErrUnavailable, or is one of Plans; the first request
// opens the period then, too.
func (e *Enforcer) OpenPeriods(ctx context.Context, workspaces []string) []error {
	results := make([]Result, len(workspaces))
	all := make([]*group, 0, len(workspaces))
	for i, ws := range workspaces {
		if !schemas.ValidID(ws) {
			results[i].Err = fmt.Errorf("open period: workspace %.64q is not an id", ws)
			continue
		}
		all = append(all, &group{workspace: ws, members: []member{{index: i}}, missing: missingPeriod})
	}
	e.plan(ctx, all, results)
	known := make([]*group, 0, len(all))
	for _, g := range all {
		if g.terms != nil {
			known = append(known, g)
		}
	}
	e.open(ctx, known, results)
	errs := make([]error, len(results))
	for i, r := range results {
		errs[i] = r.Err
	}
	return errs
}
