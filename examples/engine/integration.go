package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/schemas"
)

// patience is how long the end of a workflow may take to be stored.
const patience = time.Minute

// run takes a workflow through Headroom: ask, work, say that it is over.
func (e *Engine) run(ctx context.Context, w Workflow) (tasks int, err error) {
	// Ask. No answer is a no as well: nothing starts without a Run.
	run, err := e.headroom.Admit(ctx, client.Execution{
		WorkspaceID: w.Workspace, ID: w.ID, PayloadBytes: int64(len(w.Input)),
	})
	if err != nil {
		return 0, fmt.Errorf("not started: %w", err)
	}
	// Whatever becomes of it, give its slot back, even if ctx has ended by then.
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		err = errors.Join(err, run.Complete(ending, outcome(err)))
	}()
	// Work in the run's own context: it ends when the plan's longest duration is
	// over or Headroom says stop, and until then it keeps the slot.
	work, stop := run.Context(ctx)
	defer stop()
	payload := w.Input
	for _, task := range w.Tasks {
		tasks++
		if err := run.Tasks(int64(tasks)); err != nil { // one too many?
			return tasks, fmt.Errorf("stopped: %w", err)
		}
		payload, err = task(work, payload)
		if cause := context.Cause(work); cause != nil {
			return tasks, fmt.Errorf("stopped: %w", cause)
		}
		if err != nil {
			return tasks, err
		}
		if err := run.Payload(int64(len(payload))); err != nil { // too large?
			return tasks, fmt.Errorf("stopped: %w", err)
		}
	}
	return tasks, nil
}

// outcome is what Headroom is told of an execution that ended with err.
func outcome(err error) schemas.Outcome {
	var denied *client.Denied
	switch {
	case err == nil:
		return schemas.OutcomeSucceeded
	case errors.As(err, &denied), errors.Is(err, context.Canceled):
		return schemas.OutcomeCanceled
	default:
		return schemas.OutcomeFailed
	}
}
