package consumers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
)

// extender moves the leases of running executions; enforcement.Enforcer is one.
type extender interface {
	Extend(ctx context.Context, progress []enforcement.Progress) []enforcement.Extension
}

// progressed handles execution.progressed: it extends leases, and publishes a
// denial where a running execution went over a limit.
type progressed struct {
	enforcer extender
	answers  *answers
	breaker  *breaker
	now      func() time.Time
	log      *slog.Logger
	probe    probe
}

func (h *progressed) handle(ctx context.Context, batch []*message) []error {
	verdicts := make([]error, len(batch))
	indexes := make([]int, 0, len(batch))
	progress := make([]enforcement.Progress, 0, len(batch))
	for i, m := range batch {
		step, err := readProgress(m)
		if err != nil {
			verdicts[i] = refusedBody(err)
			continue
		}
		indexes, progress = append(indexes, i), append(progress, step)
	}
	var denials []*answer
	var denied []int
	for j, extension := range h.extend(ctx, progress) {
		i := indexes[j]
		verdicts[i] = heldVerdict(h.breaker, batch[i], extension.Err, h.now())
		switch {
		case extension.Err != nil:
		case extension.Decision != nil:
			denials = append(denials, &answer{about: batch[i], decision: *extension.Decision})
			denied = append(denied, i)
		case !extension.Live:
			h.log.DebugContext(ctx, "progress of an execution without a lease", "workspace", progress[j].WorkspaceID,
				"execution", progress[j].ExecutionID, "sequence", batch[i].sequence)
		}
	}
	h.answers.publish(ctx, denials)
	for k, i := range denied {
		if err := denials[k].err; err != nil {
			verdicts[i] = notStored(err)
		}
	}
	return verdicts
}

func readProgress(m *message) (enforcement.Progress, error) {
	event, err := schemas.Decode[schemas.ExecutionProgressed](m.subject, m.body)
	if err != nil {
		return enforcement.Progress{}, err
	}
	step := enforcement.Progress{
		WorkspaceID: event.Data.WorkspaceID, ExecutionID: event.Data.ExecutionID,
		EventID: event.ID, EventSource: event.Source,
		Tasks: event.Data.Tasks, PayloadBytes: event.Data.PayloadBytes, At: event.Time,
	}
	if event.Data.StartedAt != nil {
		step.StartedAt = *event.Data.StartedAt
	}
	return step, nil
}

func (h *progressed) extend(ctx context.Context, progress []enforcement.Progress) []enforcement.Extension {
	if len(progress) == 0 {
		return nil
	}
	if h.breaker.wait(h.now()) > 0 {
		paused := make([]enforcement.Extension, len(progress))
		for i := range paused {
			paused[i].Err = errors.Join(enforcement.ErrUnavailable, errPaused)
		}
		return paused
	}
	extensions := h.enforcer.Extend(ctx, progress)
	h.probe.at(kindProgressed, "decided")
	tell(h.breaker, h.now(), extensions, func(e enforcement.Extension) (bool, bool) { return unavailable(e.Err) })
	return extensions
}
