package main

import (
	"strings"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement/api"
)

func TestATrialIsAssignedAndShownWithWhatFollows(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	var trial api.SubscriptionRow
	i.mustJSON(&trial, "workspaces", "assign", "ws_t", "--plan", "pro", "--trial", "14d", "--after-trial", "expire")
	if trial.Status != "trialing" || trial.AfterTrial != "expire" || trial.PeriodEnd.Sub(trial.PeriodStart) != 14*24*time.Hour {
		t.Errorf("a trial is %+v", trial)
	}
	if text := i.must("workspaces", "show", "ws_t"); !hasFact(text, "after trial", "expire") {
		t.Errorf("show does not tell what follows the trial:\n%s", text)
	}
	i.must("workspaces", "assign", "ws_a", "--plan", "pro")
	if _, _, err := i.run("workspaces", "assign", "ws_a", "--plan", "pro", "--trial", "14d"); exitCode(err) != exitUsage {
		t.Errorf("a trial in the midst of a period: %v", err)
	}
}

func TestABillingPeriodIsShownWhereAQuotaIsShorter(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", catalogFile(t, "rank: 10\n", "rank: 10\n    quota_interval: month\n"))
	text := i.must("workspaces", "assign", "ws_y", "--plan", "pro", "--interval", "year", "--start", "2026-01-31")
	if !strings.Contains(text, "billing period  ") {
		t.Errorf("assign does not tell the billing period:\n%s", text)
	}
	var view api.WorkspaceView
	i.mustJSON(&view, "workspaces", "show", "ws_y")
	row := view.Subscription
	if row == nil || !row.BillingEnd.Equal(row.BillingStart.AddDate(1, 0, 0)) || row.PeriodEnd.Sub(row.PeriodStart) > 31*24*time.Hour {
		t.Errorf("the row is %+v, want a month of a year", row)
	}
	i.must("workspaces", "assign", "ws_m", "--plan", "free")
	if text := i.must("workspaces", "show", "ws_m"); strings.Contains(text, "billing period") || strings.Contains(text, "after trial") {
		t.Errorf("show tells what does not apply:\n%s", text)
	}
}

// hasFact reports whether a line of the text gives the name that value.
func hasFact(text, name, value string) bool {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok && strings.TrimSpace(rest) == value {
			return true
		}
	}
	return false
}
