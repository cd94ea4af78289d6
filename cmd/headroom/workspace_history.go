package main

import (
	"fmt"
	"io"

	"github.com/headroomhq/headroom/enforcement/api"
)

// printHistory prints the periods newest first, and below each of them what was
// changed about it, each under its own head.
func printHistory(w io.Writer, rows []api.SubscriptionView) error {
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	periods, changes := newTable("PERIOD", "END", "PLAN", "KIND", "STATUS", "CLOSED AT", "SUBSCRIPTION"),
		newTable("CHANGED AT", "PERIOD", "FIELD", "FROM", "TO", "CAUSE")
	for _, row := range rows {
		closed := "-"
		if row.ClosedAt != nil {
			closed = instant(*row.ClosedAt)
		}
		periods.add(instant(row.PeriodStart), instant(row.PeriodEnd), fmt.Sprintf("%s (revision %d)", row.PlanKey, row.PlanRevision),
			row.Kind, row.Status, closed, row.Source+" "+row.SourceID)
		for _, c := range row.Changes {
			changes.add(instant(c.At), instant(row.PeriodStart), c.Field, dash(c.From), dash(c.To), c.Cause)
		}
	}
	if err := periods.write(w, ""); err != nil || len(changes.rows) == 0 {
		return err
	}
	fmt.Fprintln(w)
	return changes.write(w, "")
}
