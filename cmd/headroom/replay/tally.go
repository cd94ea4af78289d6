package replay

import (
	"maps"
	"slices"

	"github.com/headroomhq/headroom/schemas"
)

// Tally adds up what was decided, per workspace.
type Tally struct {
	names []string
	rows  map[string]*Row
}

// Row is what became of one workspace.
type Row struct {
	Workspace, Plan string
	// Requested is the number of executions that the trace has of it.
	Requested int
	// Allowed and Denied count the decisions before the start, the denials by code.
	Allowed int
	Denied  map[int]int
	// Stopped counts the denials while an execution ran, by code.
	Stopped map[int]int
	// WouldDeny and WouldStop count the same of decisions with the mark shadow,
	// which deny and stop nothing.
	WouldDeny, WouldStop map[int]int
	// Used is what the last decision said of the execution quota; Quota and
	// Concurrency are the plan's limits, and Peak the most that ran at once. They
	// are not known before the first decision under a plan.
	Known              bool
	Used, Peak         int64
	Quota, Concurrency schemas.Limit
}

// NewTally begins with a row of zeros for each workspace of the trace.
func NewTally(trace Trace, plans map[string]string) *Tally {
	tally := &Tally{names: trace.Workspaces(), rows: make(map[string]*Row)}
	for _, name := range tally.names {
		row := newRow()
		row.Workspace, row.Plan = name, plans[name]
		tally.rows[name] = &row
	}
	for _, execution := range trace.Executions {
		tally.rows[execution.Workspace].Requested++
	}
	return tally
}

func newRow() Row {
	return Row{
		Denied: make(map[int]int), Stopped: make(map[int]int),
		WouldDeny: make(map[int]int), WouldStop: make(map[int]int),
	}
}

// Add counts one decision and returns the workspace's row after it.
func (t *Tally) Add(d Decided) Row {
	decision := d.Decision
	row := t.rows[d.Execution.Workspace]
	denied, shadowed := row.Denied, row.WouldDeny
	if decision.Kind == schemas.KindRuntime {
		denied, shadowed = row.Stopped, row.WouldStop
	} else if decision.Allowed {
		row.Allowed++
	}
	switch {
	case decision.Code == 0:
	case decision.Allowed:
		shadowed[decision.Code]++
	default:
		denied[decision.Code]++
	}
	if used, known := quotaUsed(decision); known {
		row.Used = used
	}
	row.Peak = max(row.Peak, decision.Peak)
	if decision.PlanKey != "" {
		row.Known, row.Plan = true, decision.PlanKey
		row.Quota = decision.Limits.MaxExecutions
		row.Concurrency = decision.Limits.MaxConcurrentExecutions
	}
	return *row
}

// Rows lists the workspaces in order of first appearance.
func (t *Tally) Rows() []Row {
	var rows []Row
	for _, name := range t.names {
		rows = append(rows, *t.rows[name])
	}
	return rows
}

// Unanswered is how many executions of the trace have no decision before
// their start.
func (t *Tally) Unanswered() int {
	missing := 0
	for _, row := range t.rows {
		missing += row.Requested - row.Allowed - sum(row.Denied)
	}
	return missing
}

func sum(counts map[int]int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}

func codes(rows []Row) []int {
	seen := make(map[int]bool)
	for _, row := range rows {
		for _, counts := range []map[int]int{row.Denied, row.Stopped, row.WouldDeny, row.WouldStop} {
			for code := range counts {
				seen[code] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
