package enforcement

import (
	"context"
	"fmt"
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

// Admit answers each request, in the order given. Requests of one workspace are
// judged in that order by one call; all workspaces share one round trip. A
// request that was answered before is answered the same, with Replayed set: an
// allow for any event that names the execution, a denial for its own event only.
//
// A result with an error holds no decision: nobody was admitted, or somebody was
// and nobody heard, which asking again repeats without taking a second slot.
func (e *Enforcer) Admit(ctx context.Context, requests []Request) []Result {
	results := make([]Result, len(requests))
	waiting := e.groups(requests, results)
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

// admitRound asks Redis once for all groups and returns those to ask again: their
// plan was read anew, or what Redis lacked was opened.
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
	var stale, shut []*group
	for i, g := range asked {
		c := calls[i]
		switch {
		case c.err != nil:
			g.fail(results, c.err)
		case integer(c.reply[0]) == statusStale:
			e.refresh(g, c.reply)
			stale = append(stale, g)
		case integer(c.reply[0]) == statusMissing:
			g.missing = missingOf(c.reply)
			shut = append(shut, g)
		default:
			e.answers(g, c.reply, results)
		}
	}
	e.plan(ctx, stale, results)
	return append(stale, e.supply(ctx, shut, results)...)
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
	return &call{script: admitScript, keys: e.keys(g.workspace), args: args}
}

// answers reads a group's answers into its results.
func (e *Enforcer) answers(g *group, reply []any, results []Result) {
	n := len(g.members)
	if len(reply) < 2+n {
		g.fail(results, fmt.Errorf("admit for workspace %s: reply has %d answers, %d expected", g.workspace, len(reply)-2, n))
		return
	}
	older, err := readSnapshots(reply[2+n:])
	if err != nil {
		g.fail(results, fmt.Errorf("admit for workspace %s: %w", g.workspace, err))
		return
	}
	for i, m := range g.members {
		results[m.index] = e.answer(g, m, text(reply[2+i]), older)
	}
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
	case g.terms.revision == seen && g.terms.fence() < planSeen:
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
