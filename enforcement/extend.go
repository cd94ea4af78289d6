package enforcement

import (
	"context"
	"fmt"
	"time"
)

// Extend moves the leases of running executions later, never earlier and only
// while they are live, and holds what they report against the limits that they
// were admitted with. All workspaces share one round trip.
func (e *Enforcer) Extend(ctx context.Context, progress []Progress) []Extension {
	results := make([]Extension, len(progress))
	chunks := perWorkspace(len(progress), func(i int) string { return progress[i].WorkspaceID })
	var calls []*call
	var sent [][]int
	for _, chunk := range chunks {
		args := []any{e.window}
		var members []int
		for _, i := range chunk {
			if err := checkIDs(progress[i].WorkspaceID, progress[i].ExecutionID); err != nil {
				results[i].Err = fmt.Errorf("extend: %w", err)
				continue
			}
			args = append(args, progress[i].ExecutionID, told(progress[i].Tasks), told(progress[i].PayloadBytes))
			members = append(members, i)
		}
		if len(members) > 0 {
			k := e.keys(progress[members[0]].WorkspaceID)
			calls, sent = append(calls, &call{script: extendScript, keys: k, args: args}), append(sent, members)
		}
	}
	if len(calls) > 0 {
		e.run(ctx, calls)
	}
	for n, c := range calls {
		e.readExtensions(c, sent[n], progress, results)
	}
	return results
}

// told is how the script takes a number that may be unknown.
func told(n *int64) string {
	if n == nil || *n < 0 {
		return ""
	}
	return milliseconds(*n)
}

func (e *Enforcer) readExtensions(c *call, chunk []int, progress []Progress, results []Extension) {
	err := c.err
	if err == nil && len(c.reply) < 2+len(chunk) {
		err = fmt.Errorf("extend: reply has %d answers, %d expected", len(c.reply)-2, len(chunk))
	}
	var snapshots map[string]*terms
	if err == nil {
		snapshots, err = readSnapshots(c.reply[2+len(chunk):])
	}
	for j, i := range chunk {
		if err != nil {
			results[i] = Extension{Err: err}
			continue
		}
		now := time.UnixMilli(integer(c.reply[1])).UTC()
		results[i] = readExtension(text(c.reply[2+j]), progress[i], snapshots, now)
	}
}

func readExtension(answer string, p Progress, snapshots map[string]*terms, now time.Time) Extension {
	if len(answer) < 6 {
		return Extension{Err: fmt.Errorf("extend execution %s: answer of %d bytes", p.ExecutionID, len(answer))}
	}
	var x Extension
	if expiry := little([]byte(answer[:6])); expiry > 0 {
		x.Live, x.LeaseExpiresAt = true, time.UnixMilli(expiry).UTC()
	}
	if len(answer) < 6+allowedLength {
		return x // never heard of, or a tombstone
	}
	rec, err := unpackRecord(answer[6:])
	if err != nil {
		return Extension{Err: fmt.Errorf("extend execution %s: %w", p.ExecutionID, err)}
	}
	if t := snapshots[rec.digest]; t != nil && rec.status == 'A' {
		x.Decision = refuseRunning(p, rec, t, now)
	}
	return x
}
