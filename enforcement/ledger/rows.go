package ledger

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
)

func executionOf(d Decision) execution { return execution{d.WorkspaceID, d.ExecutionID} }

// column is one value of each item, as an array for unnest.
func column[T, V any](items []T, value func(T) V) []V {
	values := make([]V, len(items))
	for i, item := range items {
		values[i] = value(item)
	}
	return values
}

func admissionArgs(ds []Decision) pgx.NamedArgs {
	return pgx.NamedArgs{
		"workspace":        column(ds, func(d Decision) string { return d.WorkspaceID }),
		"execution":        column(ds, func(d Decision) string { return d.ExecutionID }),
		"decision":         column(ds, func(d Decision) string { return d.DecisionID }),
		"event":            column(ds, func(d Decision) string { return d.RequestEventID }),
		"event_source":     column(ds, func(d Decision) string { return d.RequestEventSource }),
		"default_epoch":    column(ds, func(d Decision) string { return d.DefaultEpoch }),
		"subscription":     column(ds, func(d Decision) *string { return d.SubscriptionID }),
		"period_start":     column(ds, func(d Decision) time.Time { return d.PeriodStart }),
		"period_end":       column(ds, func(d Decision) time.Time { return d.PeriodEnd }),
		"plan":             column(ds, func(d Decision) string { return d.PlanKey }),
		"plan_revision":    column(ds, func(d Decision) int64 { return d.PlanRevision }),
		"limits":           column(ds, limitsJSON),
		"admitted_at":      column(ds, func(d Decision) time.Time { return d.DecidedAt }),
		"lease_expires_at": column(ds, func(d Decision) *time.Time { return d.LeaseExpiresAt }),
		"used":             column(ds, func(d Decision) int64 { return d.Used }),
		"concurrent":       column(ds, func(d Decision) int64 { return d.Concurrent }),
		"peak":             column(ds, func(d Decision) int64 { return d.Peak }),
		"duration_due_at":  column(ds, durationDue),
	}
}

// limitsJSON is the snapshot as it stands in the decision. Limits are numbers and
// flags, so encoding them cannot fail; if it did, jsonb would refuse the empty text.
func limitsJSON(d Decision) string {
	body, err := json.Marshal(d.Limits)
	if err != nil {
		return ""
	}
	return string(body)
}

func completionArgs(cs []Completion) pgx.NamedArgs {
	return pgx.NamedArgs{
		"workspace": column(cs, func(c Completion) string { return c.WorkspaceID }),
		"execution": column(cs, func(c Completion) string { return c.ExecutionID }),
		"outcome":   column(cs, func(c Completion) string { return string(c.Outcome) }),
		"at":        column(cs, func(c Completion) time.Time { return c.At }),
	}
}

func earliestFirst(ds []Decision) []Decision {
	return slices.SortedFunc(slices.Values(ds), func(a, b Decision) int {
		return cmp.Or(a.DecidedAt.Compare(b.DecidedAt), cmp.Compare(a.Code, b.Code))
	})
}

func runtimeArgs(ds []Decision) pgx.NamedArgs {
	return pgx.NamedArgs{
		"workspace": column(ds, func(d Decision) string { return d.WorkspaceID }),
		"execution": column(ds, func(d Decision) string { return d.ExecutionID }),
		"code":      column(ds, func(d Decision) int { return d.Code }),
		"at":        column(ds, func(d Decision) time.Time { return d.DecidedAt }),
	}
}

// line is a row of denials.
type line struct {
	minute    time.Time
	workspace string
	code      int
	kind      schemas.DecisionKind
}

type rolledUp struct {
	line
	count int64
	last  Decision
}

// rollUp counts denials per line and keeps the latest of each.
func rollUp(ds []Decision) []rolledUp {
	lines := make(map[line]*rolledUp)
	for _, d := range ds {
		at := line{d.DecidedAt.UTC().Truncate(time.Minute), d.WorkspaceID, d.Code, d.Kind}
		sum, known := lines[at]
		if !known {
			sum = &rolledUp{line: at, last: d}
			lines[at] = sum
		}
		sum.count++
		if later(d, sum.last) {
			sum.last = d
		}
	}
	sums := make([]rolledUp, 0, len(lines))
	for _, sum := range lines {
		sums = append(sums, *sum)
	}
	return sums
}

func later(d, than Decision) bool {
	return cmp.Or(d.DecidedAt.Compare(than.DecidedAt), strings.Compare(d.DecisionID, than.DecisionID)) > 0
}

func denialArgs(sums []rolledUp) (pgx.NamedArgs, error) {
	samples := make([]string, len(sums))
	for i, sum := range sums {
		body, err := json.Marshal(sum.last.DecisionMade)
		if err != nil {
			return nil, fmt.Errorf("encode denial %s: %w", sum.last.DecisionID, err)
		}
		samples[i] = string(body)
	}
	return pgx.NamedArgs{
		"minute":        column(sums, func(s rolledUp) time.Time { return s.minute }),
		"workspace":     column(sums, func(s rolledUp) string { return s.workspace }),
		"code":          column(sums, func(s rolledUp) int { return s.code }),
		"kind":          column(sums, func(s rolledUp) string { return string(s.kind) }),
		"count":         column(sums, func(s rolledUp) int64 { return s.count }),
		"last_decision": samples,
		"last_at":       column(sums, func(s rolledUp) time.Time { return s.last.DecidedAt }),
	}, nil
}

// inOrder sorts spans by source, so that two folds lock positions in one order.
func inOrder(spans []Span) []Span {
	return slices.SortedFunc(slices.Values(spans), func(a, b Span) int { return strings.Compare(a.Source, b.Source) })
}
