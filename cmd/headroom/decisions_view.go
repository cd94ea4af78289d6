package main

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
)

func printDecisions(p *program, records []ledger.Record, told stops) error {
	t := newTable("DECIDED AT", "EXECUTION", "KIND", "ANSWER", "CODE", "ERROR", "USED", "LIMIT", "PLAN", "COUNT", "OUTCOME")
	for _, r := range records {
		d := r.Decision
		used, limit := strconv.FormatInt(d.Used, 10), schemas.LimitFrom(d.LimitValue).String()
		if d.Code == enforcement.CodeUnavailable {
			used, limit = "-", "-" // it was not measured against anything
		}
		t.add(instant(r.At), d.ExecutionID, string(d.Kind), answer(d), strconv.Itoa(d.Code), dash(d.Error),
			used, limit, dash(d.PlanKey), strconv.FormatInt(r.Count, 10), told.outcome(r))
	}
	return t.write(p.stdout, "no decisions")
}

func answer(d schemas.DecisionMade) string {
	word := "denied"
	if d.Allowed {
		word = "allowed"
	}
	if d.Shadow {
		word += " (shadow)"
	}
	return word
}

// stops tells of denials during a run, which the ledger's lines count by minute
// and code, whether they stopped nothing because of HEADROOM_SHADOW.
type stops map[stop]bool

type stop struct {
	minute time.Time
	code   int
}

func stopsOf(records []ledger.Record) stops {
	found := make(stops)
	for _, r := range records {
		if d := r.Decision; d.Kind == schemas.KindRuntime {
			found[stop{r.At.Truncate(time.Minute), d.Code}] = d.Shadow
		}
	}
	return found
}

// outcome is how the execution ended, and the denial that told it to stop, or
// would have.
func (s stops) outcome(r ledger.Record) string {
	text := cmp.Or(string(r.Outcome), "-")
	if r.RuntimeCode == 0 {
		return text
	}
	word := "stopped"
	if shadow, known := s[stop{r.RuntimeDeniedAt.Truncate(time.Minute), r.RuntimeCode}]; !known {
		word = "denied while running"
	} else if shadow {
		word = "would stop"
	}
	return fmt.Sprintf("%s (%s: %d)", text, word, r.RuntimeCode)
}
