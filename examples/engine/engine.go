package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/headroomhq/headroom/enforcement/client"
)

// The widths of two columns; longer names only shift their line.
const (
	widestWorkspace = 9
	widestID        = 21
)

// Workflow is what a workspace wants done: tasks, one after the other.
type Workflow struct {
	Workspace string
	// ID names this execution of it: a new one each time it is to run, the same one
	// when it is tried again.
	ID string
	// Input is what the first task is given.
	Input []byte
	Tasks []Task
}

// Task makes a result, the next task's input. It returns soon after ctx ends.
type Task func(ctx context.Context, input []byte) ([]byte, error)

// Engine runs workflows as far as their workspaces' plans allow.
type Engine struct {
	headroom *client.Client

	mu   sync.Mutex
	out  io.Writer
	ends map[string]int
}

// New makes an Engine that asks through the client and tells the writer what
// becomes of each workflow, in a line.
func New(headroom *client.Client, out io.Writer) *Engine {
	return &Engine{headroom: headroom, out: out, ends: make(map[string]int)}
}

// Run runs all workflows at once and returns when each is over. What a workspace's
// plan denies and a task that fails are told and no error; a workflow that Headroom
// gave no answer for is one.
func (e *Engine) Run(ctx context.Context, workflows []Workflow) error {
	fmt.Fprintf(e.out, "%-*s  %-*s  %5s  %s\n", widestWorkspace, "WORKSPACE", widestID, "EXECUTION", "TASKS", "END")
	faults := make([]error, len(workflows))
	var all sync.WaitGroup
	for i, w := range workflows {
		all.Go(func() {
			tasks, err := e.run(ctx, w)
			e.tell(w, tasks, err)
			if errors.Is(err, client.ErrUndecided) {
				faults[i] = fmt.Errorf("workflow %s of %s: %w", w.ID, w.Workspace, err)
			}
		})
	}
	all.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	fmt.Fprintf(e.out, "\n%d workflows: %d succeeded, %d failed, %d denied, %d stopped.\n",
		len(workflows), e.ends["succeeded"], e.ends["failed"], e.ends["denied"], e.ends["stopped"])
	return errors.Join(append(faults, context.Cause(ctx))...)
}

// tell writes the line of a workflow that is over.
func (e *Engine) tell(w Workflow, tasks int, err error) {
	var denied *client.Denied
	end, why := "succeeded", ""
	switch {
	case errors.As(err, &denied):
		end, why = "stopped", fmt.Sprintf(" %d %s", denied.Code, denied.Message)
		if tasks == 0 {
			end, why = "denied", " "+why
		}
	case err != nil:
		end, why = "failed", "  "+err.Error()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ends[end]++
	fmt.Fprintf(e.out, "%-*s  %-*s  %5d  %s%s\n", widestWorkspace, w.Workspace, widestID, w.ID, tasks, end, why)
}
