package replay

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNoDecision is wrapped in the error of a replay that stopped because a
	// request stayed unanswered.
	ErrNoDecision = errors.New("no decision arrived")
	// ErrNotApplied is wrapped in the error of one that stopped because a
	// progress or completion stayed without effect.
	ErrNotApplied = errors.New("the event was not applied in time")
)

// shownFaults bounds how much of a hopeless file one message lists.
const shownFaults = 40

// TraceError is everything that is wrong with a trace file.
type TraceError struct {
	File   string
	Faults []Fault
}

// Fault is one thing wrong with a trace file.
type Fault struct {
	// Line counts from 1, the header included.
	Line int
	// Column is the name of the column, empty when the whole line is at fault.
	Column string
	Detail string
}

// Error lists the faults one per line as "file:line: column: detail". Beyond
// forty it gives their number only; Faults holds all of them.
func (e *TraceError) Error() string {
	var text strings.Builder
	noun := "faults"
	if len(e.Faults) == 1 {
		noun = "fault"
	}
	fmt.Fprintf(&text, "read trace: %s has %d %s", e.File, len(e.Faults), noun)
	for i, fault := range e.Faults {
		if i == shownFaults {
			fmt.Fprintf(&text, "\n  and %d more", len(e.Faults)-shownFaults)
			break
		}
		fmt.Fprintf(&text, "\n  %s:%d: %s", e.File, fault.Line, fault)
	}
	return text.String()
}

// String is the fault without its place in the file.
func (f Fault) String() string {
	if f.Column == "" {
		return f.Detail
	}
	return f.Column + ": " + f.Detail
}
