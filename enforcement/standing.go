package enforcement

import (
	"context"
	"fmt"
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// Execution names an execution.
type Execution struct {
	WorkspaceID string
	ExecutionID string
}

// Standing is how an execution stands in Redis.
type Standing struct {
	// Known: Redis has heard of it and not forgotten it since. It forgets what is over
	// after Options.Window, and what leaked about as long after its lease ended.
	Known bool
	// Outcome is how it ended, empty if nobody said so.
	Outcome schemas.Outcome
	// Live: it holds a slot, until LeaseExpiresAt unless it is extended.
	Live           bool
	LeaseExpiresAt time.Time
	// Err wraps ErrUnavailable when Redis cannot be asked.
	Err error
}

// Standings look executions up, by their ids and whatever workspaces they are of, in
// one round trip. They change nothing.
func (e *Enforcer) Standings(ctx context.Context, executions []Execution) []Standing {
	results := make([]Standing, len(executions))
	var calls []*call
	var sent [][]int
	for _, chunk := range perWorkspace(len(executions), func(i int) string { return executions[i].WorkspaceID }) {
		args := []any{e.window}
		var members []int
		for _, i := range chunk {
			if err := checkIDs(executions[i].WorkspaceID, executions[i].ExecutionID); err != nil {
				results[i].Err = fmt.Errorf("look up: %w", err)
				continue
			}
			args, members = append(args, executions[i].ExecutionID), append(members, i)
		}
		if len(members) > 0 {
			k := e.keys(executions[members[0]].WorkspaceID)
			calls, sent = append(calls, &call{script: standingScript, keys: k, args: args}), append(sent, members)
		}
	}
	if len(calls) > 0 {
		e.run(ctx, calls)
	}
	for n, c := range calls {
		for j, i := range sent[n] {
			results[i] = readStanding(c, j)
		}
	}
	return results
}

func readStanding(c *call, j int) Standing {
	if c.err != nil {
		return Standing{Err: fmt.Errorf("look up executions: %w", c.err)}
	}
	if len(c.reply) < 3+j || len(text(c.reply[2+j])) < 6 {
		return Standing{Err: fmt.Errorf("look up executions: reply has no answer %d", j)}
	}
	answer := text(c.reply[2+j])
	var s Standing
	if expiry := little([]byte(answer[:6])); expiry > 0 {
		s.Live, s.LeaseExpiresAt = true, time.UnixMilli(expiry).UTC()
	}
	if len(answer) > 6 {
		s.Known, s.Outcome = true, outcomeOf(answer[6])
	}
	return s
}
