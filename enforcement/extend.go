package enforcement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
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
		e.extendAfterLoss(ctx, calls, func(n int) string { return progress[sent[n][0]].WorkspaceID })
	}
	for n, c := range calls {
		e.readExtensions(c, sent[n], progress, results)
	}
	return results
}

// extendAfterLoss rebuilds the workspaces that Redis lost, where it knows nothing of an
// execution, and asks again: what runs is to go on. A workspace that cannot be rebuilt now
// fails; without a plan it has nothing to rebuild.
func (e *Enforcer) extendAfterLoss(ctx context.Context, calls []*call, workspace func(n int) string) {
	var lost []*call
	var groups []*group
	for n, c := range calls {
		if c.err == nil && integer(c.reply[0]) == 1 && slices.ContainsFunc(c.reply[2:], isUnknown) {
			groups = append(groups, &group{workspace: workspace(n), members: []member{{index: len(lost)}}})
			lost = append(lost, c)
		}
	}
	if len(lost) == 0 {
		return
	}
	results := make([]Result, len(lost))
	e.plan(ctx, groups, results)
	var planned []*group
	for _, g := range groups {
		if g.terms != nil {
			planned = append(planned, g)
		}
	}
	e.rebuild(ctx, planned, results)
	var again []*call
	for i, c := range lost {
		switch err := results[i].Err; {
		case err == nil:
			again = append(again, c)
		case errors.Is(err, ErrUnavailable):
			c.err = fmt.Errorf("extend: %w", err)
		case !errors.Is(err, subscriptions.ErrNotEntitled) && !errors.Is(err, subscriptions.ErrNoDefaultPlan):
			c.err = fmt.Errorf("extend: %w: %w", &Rebuilding{Workspace: groups[i].workspace, After: comeAgain}, err)
		}
	}
	if len(again) > 0 {
		e.run(ctx, again)
	}
}

// isUnknown: an answer of the script that has no record.
func isUnknown(answer any) bool { return len(text(answer)) == expiryLength }

// expiryLength is how many bytes of an answer tell when its lease ends.
const expiryLength = 6

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
	if len(answer) < expiryLength {
		return Extension{Err: fmt.Errorf("extend execution %s: answer of %d bytes", p.ExecutionID, len(answer))}
	}
	var x Extension
	if expiry := little([]byte(answer[:expiryLength])); expiry > 0 {
		x.Live, x.LeaseExpiresAt = true, time.UnixMilli(expiry).UTC()
	}
	if len(answer) < expiryLength+allowedLength {
		return x // never heard of, or a tombstone
	}
	rec, err := unpackRecord(answer[expiryLength:])
	if err != nil {
		return Extension{Err: fmt.Errorf("extend execution %s: %w", p.ExecutionID, err)}
	}
	if t := snapshots[rec.digest]; t != nil && rec.status == 'A' {
		x.Decision = refuseRunning(p, rec, t, now)
	}
	return x
}
