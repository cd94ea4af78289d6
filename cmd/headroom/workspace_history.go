package main

import (
	"fmt"
	"io"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

// historyLength is how many periods show tells of.
const historyLength = 5

// changeView is an amendment of a running period.
type changeView struct {
	At    time.Time `json:"at"`
	Field string    `json:"field"`
	From  string    `json:"from"`
	To    string    `json:"to"`
	Cause string    `json:"cause"`
}

// historyRow is a period with its amendments, oldest first.
type historyRow struct {
	subscriptionRow
	Changes []changeView `json:"changes"`
}

func historyOf(periods []subscriptions.SubscriptionHistory) []historyRow {
	rows := make([]historyRow, len(periods))
	for i, period := range periods {
		rows[i] = historyRow{subscriptionRow: *rowOf(&period.Subscription), Changes: make([]changeView, len(period.Changes))}
		for n, c := range period.Changes {
			rows[i].Changes[n] = changeView{At: c.At, Field: c.Field, From: c.From, To: c.To, Cause: c.Cause}
		}
	}
	return rows
}

// printHistory prints the periods newest first, and below each of them what was
// changed about it, each under its own head.
func printHistory(w io.Writer, rows []historyRow) error {
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
