package enforcement

import (
	"context"
	"fmt"

	"github.com/headroomhq/headroom/schemas"
)

// perWorkspace collects the indexes of what belongs to one workspace, in chunks
// that one script call takes, in the order in which each workspace first appears.
func perWorkspace(n int, workspace func(int) string) [][]int {
	var chunks [][]int
	open := make(map[string]int)
	for i := range n {
		w := workspace(i)
		at, ok := open[w]
		if !ok || len(chunks[at]) == groupSize {
			at = len(chunks)
			chunks = append(chunks, nil)
			open[w] = at
		}
		chunks[at] = append(chunks[at], i)
	}
	return chunks
}

// Release frees the slots of executions that are over, by their ids: one that
// was freed before frees nothing, and one that was never heard of leaves a
// tombstone for its request. OutcomeNotStarted also gives the quota unit back,
// once, to the period that was charged. All workspaces share one round trip.
func (e *Enforcer) Release(ctx context.Context, completions []Completion) []Release {
	results := make([]Release, len(completions))
	chunks := perWorkspace(len(completions), func(i int) string { return completions[i].WorkspaceID })
	calls := make([]*call, 0, len(chunks))
	sent := make([][]int, 0, len(chunks))
	for _, chunk := range chunks {
		args := []any{e.window}
		var members []int
		for _, i := range chunk {
			if err := checkIDs(completions[i].WorkspaceID, completions[i].ExecutionID); err != nil {
				results[i].Err = fmt.Errorf("release: %w", err)
				continue
			}
			status := outcomeStatus[completions[i].Outcome]
			if status == "" {
				results[i].Err = fmt.Errorf("release execution %s: outcome %q is none of succeeded, failed, canceled, not_started",
					completions[i].ExecutionID, completions[i].Outcome)
				continue
			}
			args = append(args, completions[i].ExecutionID, status)
			members = append(members, i)
		}
		if len(members) > 0 {
			workspace := completions[members[0]].WorkspaceID
			calls = append(calls, &call{script: releaseScript, keys: e.keys(workspace), args: args})
			sent = append(sent, members)
		}
	}
	if len(calls) > 0 {
		e.run(ctx, calls)
	}
	for n, c := range calls {
		for j, i := range sent[n] {
			results[i] = readRelease(c, j)
		}
	}
	return results
}

func readRelease(c *call, j int) Release {
	if c.err != nil {
		return Release{Err: c.err}
	}
	if len(c.reply) < 3+j || len(text(c.reply[2+j])) != 3 {
		return Release{Err: fmt.Errorf("release: reply %v has no answer %d", c.reply, j)}
	}
	answer := text(c.reply[2+j])
	return Release{
		Known:    answer[0] == 'A' || outcomeStatus[outcomeOf(answer[0])] == answer[:1],
		Prior:    outcomeOf(answer[0]),
		Released: answer[1] == '1',
		Refunded: answer[2] == '1',
	}
}

// Withdraw has it on record that these requests were refused with a 9008 that
// was published without Redis. An allow that the very same event had obtained
// unheard is taken back, slot and quota unit both, unless the execution is over;
// one that another event was told of stays. The result is the denial on record:
// that 9008, or one that the event was given earlier.
func (e *Enforcer) Withdraw(ctx context.Context, requests []Request) []Result {
	results := make([]Result, len(requests))
	groups := e.groups(requests, results)
	calls := make([]*call, len(groups))
	for n, g := range groups {
		args := []any{e.window}
		for _, m := range g.members {
			args = append(args, m.request.ExecutionID, m.identity.request())
		}
		calls[n] = &call{script: withdrawScript, keys: e.keys(g.workspace), args: args}
	}
	if len(calls) > 0 {
		e.run(ctx, calls)
	}
	for n, g := range groups {
		c := calls[n]
		g.terms = &terms{}
		for j, m := range g.members {
			switch {
			case c.err != nil:
				results[m.index] = Result{Err: c.err}
			case len(c.reply) < 3+j:
				results[m.index] = Result{Err: fmt.Errorf("withdraw: reply has no answer %d", j)}
			default:
				results[m.index] = e.answer(g, m, text(c.reply[2+j]), nil)
			}
		}
	}
	return results
}

// Outstanding is what Redis knows of a workspace's usage at this moment.
type Outstanding struct {
	// Open is false where Redis knows nothing of the period; the rest is then 0.
	Open bool
	// Used counts the executions charged to the period, Peak the most at once.
	Used, Peak int64
	// Running is how many executions hold a live slot.
	Running int64
}

// Outstanding reads the usage of one period. It changes nothing.
func (e *Enforcer) Outstanding(ctx context.Context, workspace, usageEpoch string) (Outstanding, error) {
	c, err := e.readUsage(ctx, workspace, usageEpoch)
	if err != nil {
		return Outstanding{}, err
	}
	return Outstanding{
		Open: integer(c.reply[0]) == 1,
		Used: integer(c.reply[2]), Peak: integer(c.reply[3]), Running: integer(c.reply[4]),
	}, nil
}

// readUsage runs the script, whose reply has all eight values then.
func (e *Enforcer) readUsage(ctx context.Context, workspace, usageEpoch string) (*call, error) {
	if !schemas.ValidID(workspace) {
		return nil, fmt.Errorf("read usage: workspace %q is not an id", workspace)
	}
	const values = 8
	c := &call{script: usageScript, keys: e.keys(workspace), args: []any{e.window, usageEpoch}}
	e.run(ctx, []*call{c})
	if c.err != nil {
		return nil, fmt.Errorf("read usage of workspace %s: %w", workspace, c.err)
	}
	if len(c.reply) < values {
		return nil, fmt.Errorf("read usage of workspace %s: reply has %d values, %d expected", workspace, len(c.reply), values)
	}
	return c, nil
}
