package enforcement

import "strconv"

// keys are the five keys of a workspace, in the order of the scripts' KEYS. The
// braces put all of them into one slot of a Redis Cluster; an id never holds one
// itself (schemas.ValidID).
func keys(prefix, workspace string) []string {
	tag := prefix + ":{" + workspace + "}:"
	return []string{tag + "w", tag + "l", tag + "x", tag + "o0", tag + "o1"}
}

// milliseconds is how a script takes an instant or a length of time.
func milliseconds(n int64) string { return strconv.FormatInt(n, 10) }
