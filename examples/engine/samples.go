package engine

import (
	"bytes"
	"context"
	"errors"
	"time"
)

// taskTakes is how long a sample's task works.
const taskTakes = 2 * time.Millisecond

// Samples are workflows of the workspaces in examples/trace.csv. batch makes their
// ids new: letters, digits, - and _.
func Samples(batch string) []Workflow {
	const megabyte = 1 << 20
	return []Workflow{
		{Workspace: "orchard", ID: "harvest-report-" + batch, Input: []byte("apples"), Tasks: times(80, grow(1))},
		{Workspace: "bakery", ID: "morning-menu-" + batch, Input: []byte("bread"), Tasks: times(3, grow(1000))},
		// A result of 6 MB.
		{Workspace: "bakery", ID: "wedding-album-" + batch, Tasks: []Task{grow(3 * megabyte), grow(3 * megabyte)}},
		// Its trial's executions are used up once the trace has been played.
		{Workspace: "tidepool", ID: "tide-table-" + batch, Tasks: times(4, grow(1))},
		// One task for each of its 60 invoices.
		{Workspace: "lantern", ID: "archive-" + batch, Tasks: times(60, grow(10))},
		{Workspace: "harbor", ID: "customs-form-" + batch, Tasks: []Task{grow(1), closed}},
	}
}

func times(n int, task Task) []Task {
	tasks := make([]Task, n)
	for i := range tasks {
		tasks[i] = task
	}
	return tasks
}

// grow is a task that works for a moment and adds as many bytes to what it is given.
func grow(size int) Task {
	return func(ctx context.Context, input []byte) ([]byte, error) {
		timer := time.NewTimer(taskTakes)
		defer timer.Stop()
		select {
		case <-timer.C:
			return append(bytes.Clone(input), make([]byte, size)...), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// closed is a task that fails.
func closed(context.Context, []byte) ([]byte, error) {
	return nil, errors.New("the customs office is closed")
}
