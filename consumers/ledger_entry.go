package consumers

import (
	"time"

	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// entry is one message of a stream, as the ledger takes it: a decision, a
// completion, an invalidation, or nothing but its place.
type entry struct {
	source     string
	message    *message
	decision   *ledger.Decision
	completion *ledger.Completion
	// invalidated is the workspace whose terms changed.
	invalidated string
	// fault is why the message's content cannot be taken.
	fault error
}

// readDecision takes a decision. A denial that was published again after the
// stream's memory of message ids was over is left out, since it was counted when
// it came first; within that memory the stream itself drops what comes again.
func readDecision(m *message, remembered time.Duration) entry {
	event, err := schemas.Decode[schemas.DecisionMade](m.subject, m.body)
	if err != nil {
		return entry{message: m, fault: err}
	}
	d := event.Data
	if d.Replayed && d.Code != 0 && m.stored.Sub(d.DecidedAt) > remembered {
		return entry{message: m}
	}
	return entry{message: m, decision: &ledger.Decision{
		DecisionMade: d, DefaultEpoch: subscriptions.DefaultEpoch(d.PeriodStart),
	}}
}

// readCompletion takes a completion. One that cannot be read is left out: the
// consumer of completions writes its dead letter.
func readCompletion(m *message, _ time.Duration) entry {
	event, err := schemas.Decode[schemas.ExecutionCompleted](m.subject, m.body)
	if err != nil {
		m.body = nil // it may be large, and waits here with many others
		return entry{message: m}
	}
	at := event.Time
	if at.IsZero() {
		at = m.stored
	}
	return entry{message: m, completion: &ledger.Completion{
		WorkspaceID: event.Data.WorkspaceID, ExecutionID: event.Data.ExecutionID, Outcome: event.Data.Outcome, At: at,
	}}
}

// readInvalidation takes a plan.invalidated. One that cannot be read changed no terms
// that this system wrote, and is left out.
func readInvalidation(m *message, _ time.Duration) entry {
	event, err := schemas.Decode[schemas.PlanInvalidated](m.subject, m.body)
	if err != nil {
		return entry{message: m}
	}
	return entry{message: m, invalidated: event.Data.WorkspaceID}
}

// batchOf is the entries as one fold, continuing from the given positions.
func batchOf(entries []entry, positions map[string]uint64) ledger.Batch {
	through := make(map[string]uint64, len(positions))
	var b ledger.Batch
	for _, e := range entries {
		through[e.source] = e.message.sequence
		if e.decision != nil {
			b.Decisions = append(b.Decisions, *e.decision)
		}
		if e.completion != nil {
			b.Completions = append(b.Completions, *e.completion)
		}
		if e.invalidated != "" {
			b.Invalidated = append(b.Invalidated, e.invalidated)
		}
	}
	for source, sequence := range through {
		b.Spans = append(b.Spans, ledger.Span{Source: source, After: positions[source], Through: sequence})
	}
	return b
}
