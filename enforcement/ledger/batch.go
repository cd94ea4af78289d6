package ledger

import (
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// Batch is what was read from the streams, contiguous from each span's After.
type Batch struct {
	Spans       []Span
	Decisions   []Decision
	Completions []Completion
	// Invalidated are workspaces whose terms changed: what they have used is
	// compared with the terms of now.
	Invalidated []string
}

// Span says which part of a source a batch covers: what follows After, up to
// and including Through. Messages in it that the batch leaves out are skipped for good.
type Span struct {
	Source  string
	After   uint64
	Through uint64
}

// Decision is a decision as the ledger keeps it.
type Decision struct {
	schemas.DecisionMade
	// DefaultEpoch names the quota counter of a decision without a
	// subscription; with one, the subscription's row names it.
	DefaultEpoch string
}

// admits reports whether the decision let an execution start and charged it. A
// shadow decision that would have been a denial is allowed, but charged nothing.
func (d Decision) admits() bool {
	return d.Kind == schemas.KindAdmission && d.Allowed && d.Code == 0
}

// Completion is the end of an execution.
type Completion struct {
	WorkspaceID string
	ExecutionID string
	Outcome     schemas.Outcome
	At          time.Time
}

// execution names a row of executions.
type execution struct{ workspace, id string }

// once keeps the first item of each key, in order: a statement can't touch a
// row twice, and the first one wins.
func once[T any, K comparable](items []T, key func(T) K) []T {
	seen := make(map[K]struct{}, len(items))
	kept := make([]T, 0, len(items))
	for _, item := range items {
		k := key(item)
		if _, known := seen[k]; known {
			continue
		}
		seen[k] = struct{}{}
		kept = append(kept, item)
	}
	return kept
}
