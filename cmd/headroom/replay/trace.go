package replay

import (
	"cmp"
	"slices"
	"time"
)

// Trace is what a set of workspaces asked of an engine, in the order of the
// trace's own clock.
type Trace struct {
	// Name is the file the trace was read from, for messages.
	Name string
	// Executions is sorted by At; executions of one instant keep the order of
	// the file.
	Executions []Execution
}

// Execution is one row of a trace: one execution that really ran once.
type Execution struct {
	// Line is the row's line in the file, the header being line 1.
	Line int
	// System is the engine that ran it.
	System string
	// Workspace is whose execution it was: the column application.
	Workspace string
	ID        string
	// At is when the execution was asked for, in UTC.
	At    time.Time
	Tasks int64
	// Makespan is how long the execution ran, from At to its end.
	Makespan time.Duration
	// InputBytes is the payload of the request, OutputBytes that of the result.
	InputBytes, OutputBytes int64
}

// End is when the execution was over on the trace's clock.
func (e Execution) End() time.Time { return e.At.Add(e.Makespan) }

// Workspaces lists the trace's workspaces in order of first appearance on the
// trace's clock.
func (t Trace) Workspaces() []string {
	var names []string
	seen := make(map[string]bool)
	for _, execution := range t.Executions {
		if !seen[execution.Workspace] {
			seen[execution.Workspace] = true
			names = append(names, execution.Workspace)
		}
	}
	return names
}

// DealPlans gives each workspace one of the plans, in turn: the first
// workspace the first plan, and round again when the plans run out. It is nil
// without plans.
func DealPlans(workspaces, plans []string) map[string]string {
	if len(plans) == 0 {
		return nil
	}
	dealt := make(map[string]string, len(workspaces))
	for i, workspace := range workspaces {
		dealt[workspace] = plans[i%len(plans)]
	}
	return dealt
}

func (t *Trace) sort() {
	slices.SortStableFunc(t.Executions, func(a, b Execution) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Line, b.Line))
	})
}
