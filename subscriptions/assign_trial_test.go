package subscriptions_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

func TestAssignBeginsATrial(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	apply(t, s)
	row := assign(t, s, subscriptions.Assignment{Trial: "14d", Interval: "year", Now: noon})
	wantPeriod(t, row, "2026-11-20T12:00:00Z", "2026-12-04T12:00:00Z")
	if row.Status != "trialing" || row.AfterTrial != "convert" || row.Interval != subscriptions.Yearly || !row.Anchor.Equal(row.PeriodEnd) || row.Kind != "created" {
		t.Errorf("trial is %+v", row)
	}
	// A change of plan leaves the trial as it is, and so does a change of what follows.
	amended := assign(t, s, subscriptions.Assignment{PlanKey: "free", Interval: "month", AfterTrial: "default", Now: noon.Add(time.Hour)})
	if amended.ID != row.ID || amended.PlanKey != "free" || amended.Status != "trialing" || amended.AfterTrial != "default" || !amended.PeriodEnd.Equal(row.PeriodEnd) {
		t.Errorf("amended to %+v", amended)
	}
	longer := assign(t, s, subscriptions.Assignment{Trial: "30d", Now: noon.Add(2 * time.Hour)})
	wantPeriod(t, longer, "2026-11-20T12:00:00Z", "2026-12-20T12:00:00Z")
	if longer.ID != row.ID || longer.UsageEpoch != row.UsageEpoch || longer.AfterTrial != "default" || !longer.Anchor.Equal(longer.PeriodEnd) {
		t.Errorf("made longer: %+v", longer)
	}
	paid := assign(t, s, subscriptions.Assignment{NewPeriod: true, Now: noon.Add(3 * time.Hour)})
	wantPeriod(t, paid, "2026-11-20T15:00:00Z", "2026-12-20T15:00:00Z")
	if paid.Status != "active" || paid.AfterTrial != "" || *paid.PreviousID != row.ID {
		t.Errorf("ended by a new period: %+v", paid)
	}
	again := assign(t, s, subscriptions.Assignment{NewPeriod: true, Trial: "10d", AfterTrial: "expire", Now: noon.Add(4 * time.Hour)})
	wantPeriod(t, again, "2026-11-20T16:00:00Z", "2026-11-30T16:00:00Z")
	if again.Status != "trialing" || again.AfterTrial != "expire" {
		t.Errorf("a trial in a new period: %+v", again)
	}
}

func TestAssignAfterATrial(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	apply(t, s)
	for after, c := range map[string]struct {
		kind     string
		previous bool
	}{"convert": {"trial_end", true}, "default": {"trial_end", true}, "expire": {"created", false}} {
		trial := assign(t, s, subscriptions.Assignment{WorkspaceID: after, Trial: "14d", AfterTrial: after, Now: noon})
		row := assign(t, s, subscriptions.Assignment{WorkspaceID: after, Now: noon.AddDate(0, 0, 20)})
		if row.ID == trial.ID || row.Kind != c.kind || row.Status != "active" || row.PlanKey != "pro" || (row.PreviousID != nil) != c.previous {
			t.Errorf("%s: row is %+v", after, row)
		}
	}
}

func TestAssignRefusesATrialThatCannotBe(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	apply(t, s)
	assign(t, s, subscriptions.Assignment{WorkspaceID: "paying", Now: noon})
	assign(t, s, subscriptions.Assignment{WorkspaceID: "trying", Trial: "14d", Now: noon})
	long, start := noon.AddDate(0, -2, 0), noon.AddDate(0, 0, -1)
	for want, a := range map[string]subscriptions.Assignment{
		`trial: interval "2w"`:                               {Trial: "2w"},
		`after trial "stop": must be convert, expire or`:     {Trial: "14d", AfterTrial: "stop"},
		"after trial: there is no trial before it":           {AfterTrial: "expire"},
		"trial: 14d from 2026-09-20T12:00:00Z was over":      {Trial: "14d", Start: &long},
		"trial: workspace paying has an open enterprise":     {WorkspaceID: "paying", Trial: "14d"},
		"trial: workspace paying has an open":                {WorkspaceID: "paying", AfterTrial: "expire"},
		"start: the open trial keeps its start":              {WorkspaceID: "trying", Start: &start},
		"trial: 5m from 2026-11-20T12:00:00Z was over at 20": {WorkspaceID: "trying", Trial: "5m"},
	} {
		if a.WorkspaceID == "" {
			a.WorkspaceID = "new"
		}
		a.PlanKey, a.Now = "pro", noon.Add(time.Hour)
		if _, err := s.Assign(t.Context(), a); !errors.Is(err, subscriptions.ErrInvalidAssignment) || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}
