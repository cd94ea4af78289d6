package enforcement

import (
	"context"
	"fmt"
	"sync"

	"github.com/headroomhq/headroom/schemas"
)

// groupSize bounds the executions of one script call, so that one workspace
// cannot hold Redis for long and a call stays within Lua's argument limit.
const groupSize = 250

// group is the requests of one workspace that share a script call.
type group struct {
	workspace string
	members   []member
	terms     *terms
	// missing is what Redis lacked when it was last asked.
	missing int
}

type member struct {
	index    int // where its result goes
	request  Request
	identity identity
}

func (g *group) fail(results []Result, err error) {
	for _, m := range g.members {
		results[m.index] = Result{Err: err}
	}
}

// checkIDs refuses what could lie in another workspace's keys.
func checkIDs(workspace, execution string) error {
	if !schemas.ValidID(workspace) {
		return fmt.Errorf("workspace %.64q is not an id", workspace)
	}
	if !schemas.ValidID(execution) {
		return fmt.Errorf("execution %.64q is not an id", execution)
	}
	return nil
}

// groups sorts the requests; one that names no workspace or execution fails.
func (e *Enforcer) groups(requests []Request, results []Result) []*group {
	var all []*group
	open := make(map[string]*group)
	for i, r := range requests {
		if err := checkIDs(r.WorkspaceID, r.ExecutionID); err != nil {
			results[i].Err = fmt.Errorf("request: %w", err)
			continue
		}
		g := open[r.WorkspaceID]
		if g == nil || len(g.members) == groupSize {
			g = &group{workspace: r.WorkspaceID}
			open[r.WorkspaceID] = g
			all = append(all, g)
		}
		id := identify(schemas.KindAdmission, r.WorkspaceID, r.ExecutionID, r.EventSource, r.EventID)
		g.members = append(g.members, member{index: i, request: r, identity: id})
	}
	return all
}

// readers bounds how many reads of the database one call has under way.
const readers = 8

// inParallel does n things, a bounded number of them at a time.
func inParallel(n int, do func(i int)) {
	if n == 1 {
		do(0)
		return
	}
	var wait sync.WaitGroup
	for reader := range min(readers, n) {
		wait.Go(func() {
			for i := reader; i < n; i += readers {
				do(i)
			}
		})
	}
	wait.Wait()
}

// plan looks up the terms of each group, by Redis's clock as far as it is known;
// a group whose plan cannot be read fails and is given no terms.
func (e *Enforcer) plan(ctx context.Context, all []*group, results []Result) {
	at := e.clock.at(e.now())
	inParallel(len(all), func(i int) {
		g := all[i]
		g.terms = nil
		found, err := e.plans.Lookup(ctx, g.workspace, at)
		if err == nil {
			g.terms, err = e.planOf(found)
		}
		if err != nil {
			g.fail(results, fmt.Errorf("look up plan of workspace %s: %w", g.workspace, err))
		}
	})
}
