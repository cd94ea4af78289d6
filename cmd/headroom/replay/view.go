package replay

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
)

const (
	clockFormat = "2006-01-02 15:04:05"
	// widestName is where a long workspace or execution is cut.
	widestName = 40
)

// The colours, as a terminal understands them.
const (
	green  = "\x1b[32m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	faint  = "\x1b[2m"
	plain  = "\x1b[0m"
)

// View shows a replay to a person, a line per decision. Its methods may be
// called from several goroutines.
type View struct {
	mu     sync.Mutex
	out    io.Writer
	err    error
	colour bool
	tally  *Tally
	// workspace, plan and execution are the widths of these columns.
	workspace, plan, execution int
}

// Plan is a plan of the catalog, for Begin.
type Plan struct {
	Key    string
	Limits schemas.Limits
}

// NewView shows what happens to the trace's workspaces, which are on the
// given plans. Colours are for a terminal only.
func NewView(out io.Writer, trace Trace, plans map[string]string, colour bool) *View {
	v := &View{
		out: out, colour: colour, tally: NewTally(trace, plans),
		workspace: len("workspace"), plan: len("plan"), execution: len("execution"),
	}
	for _, e := range trace.Executions {
		v.workspace = min(widestName, max(v.workspace, len(e.Workspace)))
		v.execution = min(widestName, max(v.execution, len(e.ID)))
		v.plan = min(widestName, max(v.plan, len(plans[e.Workspace])))
	}
	return v
}

// Begin shows what each plan allows and the head of the lines to come.
func (v *View) Begin(plans []Plan) {
	v.mu.Lock()
	defer v.mu.Unlock()
	table := v.table()
	fmt.Fprintln(table, "PLAN\tEXECUTIONS\tAT ONCE\tTASKS EACH\tMINUTES EACH\tMEGABYTES EACH\tSTARTS A MINUTE")
	for _, plan := range plans {
		l := plan.Limits
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", plan.Key, l.MaxExecutions, l.MaxConcurrentExecutions,
			l.MaxTasksPerExecution, l.MaxExecutionDurationMinutes, l.MaxExecutionPayloadSizeMB, l.MaxExecutionsPerMinute)
	}
	v.flush(table)
	v.printf("\n%-19s  %-*s  %-*s  %-*s  %-9s  %-7s  %s\n", "CLOCK", v.workspace, "WORKSPACE",
		v.plan, "PLAN", v.execution, "EXECUTION", "USED", "RUNNING", "DECISION")
}

// Decided shows a decision of the replay and counts it.
func (v *View) Decided(d Decided) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.line(d.At, v.tally.Add(d), d.Decision)
}

// Overheard shows a decision on somebody else's event; it is counted nowhere.
func (v *View) Overheard(d schemas.DecisionMade) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.line(d.DecidedAt, Row{Workspace: d.WorkspaceID, Plan: d.PlanKey}, d)
}

func (v *View) line(at time.Time, row Row, d schemas.DecisionMade) {
	used, running := "-", "-"
	if n, known := quotaUsed(d); known {
		used = share(n, d.Limits.MaxExecutions)
	} else if row.Known && measured(d) {
		used = share(row.Used, row.Quota)
	}
	// A runtime decision is about one execution and counts no others.
	if measured(d) && d.Kind != schemas.KindRuntime {
		running = share(d.Concurrent, d.Limits.MaxConcurrentExecutions)
	}
	v.printf("%s  %-*s  %-*s  %-*s  %-9s  %-7s  %s\n",
		v.paint(faint, at.UTC().Format(clockFormat)),
		v.workspace, shorten(row.Workspace), v.plan, shorten(row.Plan), v.execution, shorten(d.ExecutionID),
		used, running, v.verdict(d))
}

// measured reports whether the decision was taken by the plan's limits.
func measured(d schemas.DecisionMade) bool {
	return d.PlanKey != "" && d.Code != enforcement.CodeUnavailable
}

// quotaUsed is how much of the execution quota was used, if the decision tells:
// a denial by another limit tells how much of that one.
func quotaUsed(d schemas.DecisionMade) (n int64, known bool) {
	tells := d.Code == 0 || d.Limit == schemas.LimitExecutions
	return d.Used, measured(d) && d.Kind == schemas.KindAdmission && tells
}

func (v *View) verdict(d schemas.DecisionMade) string {
	switch {
	case d.Allowed && d.Code != 0:
		return v.paint(yellow, fmt.Sprintf("shadow  %d", d.Code)) + " " + printable(d.Message)
	case d.Allowed:
		return v.paint(green, "allowed")
	case d.Kind == schemas.KindRuntime:
		return v.paint(yellow, fmt.Sprintf("stopped %d", d.Code)) + " " + printable(d.Message)
	default:
		return v.paint(red, fmt.Sprintf("denied  %d", d.Code)) + " " + printable(d.Message)
	}
}

func (v *View) paint(colour, text string) string {
	if !v.colour {
		return text
	}
	return colour + text + plain
}

func (v *View) table() *tabwriter.Writer { return tabwriter.NewWriter(writer{v}, 0, 8, 2, ' ', 0) }

func (v *View) flush(table *tabwriter.Writer) {
	if err := table.Flush(); err != nil && v.err == nil {
		v.err = err
	}
}

func (v *View) printf(format string, args ...any) { fmt.Fprintf(writer{v}, format, args...) }

// writer remembers the first error and takes no more after it.
type writer struct{ view *View }

// Write implements io.Writer.
func (w writer) Write(text []byte) (int, error) {
	if w.view.err != nil {
		return 0, w.view.err
	}
	n, err := w.view.out.Write(text)
	w.view.err = err
	return n, err
}

// share is "used/limit".
func share(used int64, limit schemas.Limit) string {
	if limit.IsUnlimited() {
		return fmt.Sprintf("%d/∞", used)
	}
	return fmt.Sprintf("%d/%s", used, limit)
}

func shorten(name string) string {
	if utf8.RuneCountInString(name) <= widestName {
		return printable(name)
	}
	return printable(string([]rune(name)[:widestName-1])) + "…"
}

// printable keeps what came over the wire from steering the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}
