package enforcement

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// The statuses that begin a script's reply.
const (
	statusDone = iota
	statusStale
	statusMissing
)

// What admit may find missing.
const (
	missingWorkspace = 1 + iota
	missingPeriod
	missingSnapshot
)

// admitRounds bounds how often a group is asked again after its plan was
// reloaded or what Redis lacked was opened. Each round cures one cause: a first
// sight, a plan change, and a period that ends meanwhile make three.
const admitRounds = 5

// groupSize bounds the executions of one script call, so that one workspace
// cannot hold Redis for long and a call stays within Lua's argument limit.
const groupSize = 250

// Admit answers each request, in the order given. Requests of one workspace are
// judged in that order by one call; all workspaces share one round trip. A
// request that was answered before is answered the same, with Replayed set: an
// allow for any event that names the execution, a denial for its own event only.
//
// A result with an error holds no decision: nobody was admitted, or somebody was
// and nobody heard, which asking again repeats without taking a second slot.
func (e *Enforcer) Admit(ctx context.Context, requests []Request) []Result {
	results := make([]Result, len(requests))
	waiting := e.groups(requests)
	e.plan(ctx, waiting, results)
	for round := 0; len(waiting) > 0; round++ {
		if round == admitRounds {
			for _, g := range waiting {
				g.fail(results, fmt.Errorf("admit for workspace %s: %w", g.workspace, ErrStale))
			}
			break
		}
		waiting = e.admitRound(ctx, waiting, results)
	}
	return results
}

// group is the requests of one workspace that share a script call.
type group struct {
	workspace string
	members   []member
	terms     *terms
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

func (e *Enforcer) groups(requests []Request) []*group {
	var all []*group
	open := make(map[string]*group)
	for i, r := range requests {
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

// planners bounds how many plans are read at the same time.
const planners = 8

// plan looks up the terms of each group; a group whose plan cannot be read fails
// and is given no terms.
func (e *Enforcer) plan(ctx context.Context, all []*group, results []Result) {
	at := e.clock.at(e.now())
	if len(all) == 1 {
		e.planGroup(ctx, all[0], at, results)
		return
	}
	var wait sync.WaitGroup
	for n := range min(planners, len(all)) {
		wait.Go(func() {
			for i := n; i < len(all); i += planners {
				e.planGroup(ctx, all[i], at, results)
			}
		})
	}
	wait.Wait()
}

func (e *Enforcer) planGroup(ctx context.Context, g *group, at time.Time, results []Result) {
	g.terms = nil
	found, err := e.plans.Lookup(ctx, g.workspace, at)
	if err == nil {
		g.terms, err = e.planOf(found)
	}
	if err != nil {
		g.fail(results, fmt.Errorf("look up plan of workspace %s: %w", g.workspace, err))
	}
}

// admitRound asks Redis once for all groups and returns those to ask again.
func (e *Enforcer) admitRound(ctx context.Context, all []*group, results []Result) []*group {
	calls := make([]*call, 0, len(all))
	asked := make([]*group, 0, len(all))
	for _, g := range all {
		if g.terms != nil {
			asked = append(asked, g)
			calls = append(calls, e.admitCall(g))
		}
	}
	if len(calls) == 0 {
		return nil
	}
	e.run(ctx, calls)
	var again []*group
	for i, g := range asked {
		if err := e.settle(ctx, g, calls[i], results); errors.Is(err, errAskAgain) {
			again = append(again, g)
		} else if err != nil {
			g.fail(results, err)
		}
	}
	return again
}

func (e *Enforcer) admitCall(g *group) *call {
	args := make([]any, 0, len(g.terms.head)+4*len(g.members))
	args = append(args, g.terms.head...)
	for _, m := range g.members {
		oversized, deadline := "0", "0"
		if payloadExceeds(g.terms.Limits, m.request.PayloadBytes) {
			oversized = "1"
		}
		if !m.request.Deadline.IsZero() {
			deadline = milliseconds(max(m.request.Deadline.UnixMilli(), 1))
		}
		args = append(args, m.request.ExecutionID, m.identity.request(), oversized, deadline)
	}
	return &call{script: admitScript, keys: keys(e.prefix, g.workspace), args: args}
}

var errAskAgain = errors.New("ask again")

// settle reads a group's reply into its results, or cures what the script met
// and returns errAskAgain.
func (e *Enforcer) settle(ctx context.Context, g *group, c *call, results []Result) error {
	if c.err != nil {
		return c.err
	}
	redisNow := time.UnixMilli(integer(c.reply[1])).UTC()
	switch integer(c.reply[0]) {
	case statusStale:
		e.refresh(g, c.reply)
		e.planGroup(ctx, g, redisNow, results)
		return errAskAgain
	case statusMissing:
		if err := e.open(ctx, g, c.reply); err != nil {
			return err
		}
		return errAskAgain
	}
	n := len(g.members)
	if len(c.reply) < 2+n {
		return fmt.Errorf("admit for workspace %s: reply has %d answers, %d expected", g.workspace, len(c.reply)-2, n)
	}
	older, err := readSnapshots(c.reply[2+n:])
	if err != nil {
		return fmt.Errorf("admit for workspace %s: %w", g.workspace, err)
	}
	for i, m := range g.members {
		results[m.index] = e.answer(g, m, text(c.reply[2+i]), older)
	}
	return nil
}

// refresh makes the plan cache forget what Redis called stale. A plan that is
// not behind was refused for its period alone: the next lookup, by Redis's own
// clock, finds the right one.
func (e *Enforcer) refresh(g *group, reply []any) {
	if len(reply) < 4 {
		return
	}
	seen, planSeen := integer(reply[2]), integer(reply[3])
	switch {
	case g.terms.revision < seen:
		e.plans.Invalidate(g.workspace, seen)
	case g.terms.revision == seen && g.terms.PlanRevision < planSeen:
		e.plans.Invalidate(g.workspace, 0)
	}
}

// answer turns one answer of the script into a result. A repeated answer is told
// in the terms that it was given under.
func (e *Enforcer) answer(g *group, m member, packed string, older map[string]*terms) Result {
	if packed == "" {
		return Result{Err: fmt.Errorf("admit execution %s: empty answer", m.request.ExecutionID)}
	}
	rec, err := unpackRecord(packed[1:])
	if err != nil {
		return Result{Err: fmt.Errorf("admit execution %s: %w", m.request.ExecutionID, err)}
	}
	under := g.terms
	if rec.digest != g.terms.digest {
		under = older[rec.digest]
	}
	d := decide(m.request, m.identity, rec, under)
	d.Replayed = packed[0] == 'r'
	r := Result{Decision: d}
	if d.LeaseExpiresAt != nil {
		r.LeaseExpiresAt = *d.LeaseExpiresAt
	}
	return r
}
