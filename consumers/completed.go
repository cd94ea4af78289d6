package consumers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
)

// releaser frees the slots of executions that are over; enforcement.Enforcer is one.
type releaser interface {
	Release(ctx context.Context, completions []enforcement.Completion) []enforcement.Release
}

// completed handles execution.completed. A completion is acknowledged only once
// its release succeeded, and put off for as long as Redis is away.
type completed struct {
	enforcer releaser
	breaker  *breaker
	stats    *Stats
	now      func() time.Time
	log      *slog.Logger
	probe    probe
}

func (h *completed) handle(ctx context.Context, batch []*message) []error {
	verdicts := make([]error, len(batch))
	indexes := make([]int, 0, len(batch))
	completions := make([]enforcement.Completion, 0, len(batch))
	for i, m := range batch {
		event, err := schemas.Decode[schemas.ExecutionCompleted](m.subject, m.body)
		if err != nil {
			verdicts[i] = refusedBody(err)
			continue
		}
		indexes = append(indexes, i)
		completions = append(completions, enforcement.Completion{
			WorkspaceID: event.Data.WorkspaceID, ExecutionID: event.Data.ExecutionID, Outcome: event.Data.Outcome,
		})
	}
	for j, release := range h.release(ctx, completions) {
		m := batch[indexes[j]]
		verdicts[indexes[j]] = heldVerdict(h.breaker, m, release.Err, h.now())
		if release.Err == nil {
			h.remark(ctx, m, completions[j], release)
		}
	}
	return verdicts
}

func (h *completed) release(ctx context.Context, completions []enforcement.Completion) []enforcement.Release {
	if len(completions) == 0 {
		return nil
	}
	if h.breaker.wait(h.now()) > 0 {
		paused := make([]enforcement.Release, len(completions))
		for i := range paused {
			paused[i].Err = errors.Join(enforcement.ErrUnavailable, errPaused)
		}
		return paused
	}
	releases := h.enforcer.Release(ctx, completions)
	h.probe.at(kindCompleted, "decided")
	tell(h.breaker, h.now(), releases, func(r enforcement.Release) (bool, bool) { return unavailable(r.Err) })
	return releases
}

// remark says what is odd about a completion, and nothing about one that is not.
func (h *completed) remark(ctx context.Context, m *message, c enforcement.Completion, r enforcement.Release) {
	about := []any{"workspace", c.WorkspaceID, "execution", c.ExecutionID, "outcome", c.Outcome, "sequence", m.sequence}
	switch {
	case r.Prior != "" && r.Prior != c.Outcome:
		h.stats.contradictions.Add(1)
		h.log.WarnContext(ctx, "completion contradicts an earlier one, which stands", append(about, "prior", r.Prior)...)
	case !r.Known:
		h.log.DebugContext(ctx, "completion came before its request", about...)
	}
}
