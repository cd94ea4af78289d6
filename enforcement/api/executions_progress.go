package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
)

// progress is one caller's report.
type progress struct {
	report enforcement.Progress
	trace  nats.Header
}

// Progress tells how far a running execution has come, extends its lease, and holds it
// against the limits that it was admitted with. An Extension with a Decision says that
// it must stop, unless the decision is only a shadow (its Allowed is true then); the
// decision is in the stream. One that is not Live has no slot: nothing was extended.
//
// The errors are those of Admit. The lease may have been extended all the same, which
// asking again does no more than once more.
func (e *Executions) Progress(ctx context.Context, p enforcement.Progress) (enforcement.Extension, error) {
	if err := errors.Join(checkNames(p.WorkspaceID, p.ExecutionID), checkEvent(p.EventID, p.EventSource),
		checkCount("tasks", p.Tasks), checkCount("payload_bytes", p.PayloadBytes)); err != nil {
		return enforcement.Extension{}, err
	}
	waiting, cancel := e.patient(ctx, time.Time{})
	defer cancel()
	x, err := answer(waiting, e, &e.progresses, progress{report: p, trace: traceOf(ctx)})
	if err != nil {
		return enforcement.Extension{}, fmt.Errorf("progress of execution %s of workspace %s: %w", p.ExecutionID, p.WorkspaceID, err)
	}
	e.stats.extended.Add(1)
	if x.Decision != nil {
		e.stats.stopped.Add(1)
	}
	return x, nil
}

type pendingProgress = pending[progress, enforcement.Extension]

// extend answers a batch of progresses.
func (e *Executions) extend(batch []*pendingProgress) {
	ctx, cancel := e.flight(len(batch))
	defer cancel()
	reports := make([]enforcement.Progress, len(batch))
	for i, each := range batch {
		reports[i] = each.question.report
	}
	var stopped []*pendingProgress
	var out []schemas.OutgoingDecision
	for i, x := range e.options.Enforcer.Extend(ctx, reports) {
		each := batch[i]
		each.answer, each.err = x, x.Err
		if x.Err == nil && x.Decision != nil {
			stopped = append(stopped, each)
			out = append(out, schemas.OutgoingDecision{Decision: *x.Decision, About: each.question.trace})
		}
	}
	if len(stopped) == 0 {
		return
	}
	for i, written := range e.options.Decisions.Write(ctx, out) {
		stopped[i].answer.Decision, stopped[i].err = &written.Stands, written.Err
	}
}
