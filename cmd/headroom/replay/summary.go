package replay

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/headroomhq/headroom/enforcement"
)

// End shows what became of each workspace, and what the codes mean. Its error
// is the first that any of the view's lines met.
func (v *View) End() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	rows := v.tally.Rows()
	v.printf("\n")
	table := v.table()
	fmt.Fprintln(table, "WORKSPACE\tPLAN\tREQUESTED\tALLOWED\tDENIED\tSTOPPED WHILE RUNNING\tUSED/QUOTA\tPEAK/AT ONCE")
	total := newRow()
	for _, row := range rows {
		used, peak := "-", "-"
		if row.Known {
			used, peak = share(row.Used, row.Quota), share(row.Peak, row.Concurrency)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", row.Workspace, row.Plan, row.Requested, row.Allowed,
			row.denials(), row.stops(), used, peak)
		total.add(row)
	}
	fmt.Fprintf(table, "all\t\t%d\t%d\t%s\t%s\n", total.Requested, total.Allowed, total.denials(), total.stops())
	v.flush(table)
	if met := codes(rows); len(met) > 0 {
		v.printf("\n")
		for _, code := range met {
			v.printf("%d  %s: %s\n", code, enforcement.CodeName(code), meaning(code))
		}
	}
	if missing := v.tally.Unanswered(); missing > 0 {
		v.printf("\n%d of %d executions were not decided.\n", missing, total.Requested)
	}
	return v.err
}

// Unanswered is how many executions of the trace have no decision yet.
func (v *View) Unanswered() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tally.Unanswered()
}

func (r *Row) add(other Row) {
	r.Requested += other.Requested
	r.Allowed += other.Allowed
	addCounts(r.Denied, other.Denied)
	addCounts(r.Stopped, other.Stopped)
	addCounts(r.WouldDeny, other.WouldDeny)
	addCounts(r.WouldStop, other.WouldStop)
}

func addCounts(to, counts map[int]int) {
	for code, n := range counts {
		to[code] += n
	}
}

func (r *Row) denials() string { return byCode(r.Denied, "would deny ", r.WouldDeny) }

func (r *Row) stops() string { return byCode(r.Stopped, "would stop ", r.WouldStop) }

// byCode is like "9001 ×4, 9006 ×1", and "-" for none; what was only shadowed
// follows after the word.
func byCode(counts map[int]int, word string, shadowed map[int]int) string {
	parts := eachCode(counts)
	if would := eachCode(shadowed); len(would) > 0 {
		would[0] = word + would[0]
		parts = append(parts, would...)
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

func eachCode(counts map[int]int) []string {
	var parts []string
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d ×%d", code, counts[code]))
	}
	return parts
}

func meaning(code int) string {
	switch code {
	case enforcement.CodeExecutionQuota:
		return "the period's execution quota is used up"
	case enforcement.CodeConcurrency:
		return "too many executions at once"
	case enforcement.CodeTasks:
		return "one execution has more tasks than the plan allows"
	case enforcement.CodeDuration:
		return "one execution ran longer than the plan allows"
	case enforcement.CodeRate:
		return "too many starts in a minute"
	case enforcement.CodePayload:
		return "a payload is larger than the plan allows"
	case enforcement.CodeUnavailable:
		return "Headroom could not decide, and refuses then"
	default:
		return "see the decision's message"
	}
}
