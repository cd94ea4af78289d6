package enforcement

import (
	"strconv"
	"time"
)

// keys are those of a workspace, in the order of the scripts' KEYS. The braces put
// all of them into one slot of a Redis Cluster; an id never holds one itself
// (schemas.ValidID). The last is the epoch, which all workspaces of one server share.
// No key of one shard of several is in every slot, so there each workspace has its own.
func (e *Enforcer) keys(workspace string) []string {
	tag := e.prefix + ":{" + workspace + "}:"
	epoch := e.prefix + ":epoch"
	if e.sharded {
		epoch = tag + "epoch"
	}
	return []string{tag + "w", tag + "l", tag + "x", tag + "o0", tag + "o1", epoch}
}

// epochKept is how long a workspace's own epoch is kept, in milliseconds. Shared by all
// it stays for ever.
func (e *Enforcer) epochKept() string {
	const kept = 400 * 24 * time.Hour
	if !e.sharded {
		return "0"
	}
	return milliseconds(kept.Milliseconds())
}

// milliseconds is how a script takes an instant or a length of time.
func milliseconds(n int64) string { return strconv.FormatInt(n, 10) }
