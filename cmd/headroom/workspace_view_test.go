package main

import (
	"strings"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/subscriptions"
)

func TestARowTellsWhatIsWrongWithIt(t *testing.T) {
	t.Parallel()
	begins := time.Date(2027, 1, 30, 10, 0, 0, 0, time.UTC)
	row := api.ViewSubscription(&subscriptions.Subscription{
		PeriodStart: begins, PeriodEnd: begins.AddDate(0, 1, 0),
		SourceFacts: subscriptions.SourceFacts{PlanUnresolved: true, Disputed: true, TestClock: true},
	})
	var text strings.Builder
	if err := facts(&text, ahead(row)...); err != nil {
		t.Fatal(err)
	}
	if !row.PlanUnresolved || !strings.Contains(text.String(), "the last plan stays") || !strings.Contains(text.String(), "its money is withdrawn") {
		t.Errorf("the row is %+v:\n%s", row, text.String())
	}
	view := api.WorkspaceView{PeriodStart: begins.AddDate(0, -2, 0), PeriodEnd: begins.AddDate(0, 1, 0), Subscription: row}
	if got := periodText(view); got != "2027-01-30T10:00:00Z to 2027-03-02T10:00:00Z (on a test clock)" {
		t.Errorf("the period is %q", got)
	}
}
