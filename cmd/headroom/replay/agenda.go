package replay

import (
	"container/heap"
	"slices"
	"time"
)

// agenda yields the moments of a trace in the order of the trace's clock: an
// execution is asked for, and one that was allowed ends. Of one instant the
// ends come first, so that a slot freed is a slot to be had.
type agenda struct {
	waiting []Execution
	running ends
}

// moment is one thing that happens: the start of the execution or its end.
type moment struct {
	at        time.Time
	end       bool
	execution Execution
}

func newAgenda(trace Trace) *agenda { return &agenda{waiting: trace.Executions} }

// next is false once nothing is left.
func (a *agenda) next() (moment, bool) {
	switch {
	case len(a.waiting) == 0 && len(a.running) == 0:
		return moment{}, false
	case len(a.waiting) == 0 || len(a.running) > 0 && !a.running[0].End().After(a.waiting[0].At):
		execution, _ := heap.Pop(&a.running).(Execution)
		return moment{at: execution.End(), end: true, execution: execution}, true
	}
	execution := a.waiting[0]
	a.waiting = a.waiting[1:]
	return moment{at: execution.At, execution: execution}, true
}

// started puts the execution's end on the agenda.
func (a *agenda) started(execution Execution) { heap.Push(&a.running, execution) }

// gaps are the silences between the moments, were every execution allowed.
func (t Trace) gaps() []time.Duration {
	var moments []time.Time
	for _, execution := range t.Executions {
		moments = append(moments, execution.At, execution.End())
	}
	slices.SortFunc(moments, time.Time.Compare)
	var gaps []time.Duration
	for i := 1; i < len(moments); i++ {
		gaps = append(gaps, moments[i].Sub(moments[i-1]))
	}
	return gaps
}

// ends is a heap of executions, the one that ends first on top; of those that
// end together the one that stands first in the file.
type ends []Execution

func (e ends) Len() int      { return len(e) }
func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

func (e ends) Less(i, j int) bool {
	if order := e[i].End().Compare(e[j].End()); order != 0 {
		return order < 0
	}
	return e[i].Line < e[j].Line
}

// Push is for package heap.
func (e *ends) Push(x any) {
	if execution, ok := x.(Execution); ok {
		*e = append(*e, execution)
	}
}

// Pop is for package heap.
func (e *ends) Pop() any {
	last := len(*e) - 1
	execution := (*e)[last]
	*e = (*e)[:last]
	return execution
}
