package subscriptions_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/subscriptions"
)

// A period without an interval ends and is followed by none, until somebody
// says how long the next one is.

func TestAssignKeepsAPeriodThatDoesNotRenew(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	first := assign(t, s, subscriptions.Assignment{WorkspaceID: "ws", PlanKey: "free"})
	execute(t, pool, `UPDATE subscriptions SET "interval" = NULL, anchor = NULL`)
	row := assign(t, s, subscriptions.Assignment{WorkspaceID: "ws", PlanKey: "pro"})
	if row.ID != first.ID || !row.PeriodEnd.Equal(first.PeriodEnd) {
		t.Errorf("the row is %s until %s, want %s until %s", row.ID, row.PeriodEnd, first.ID, first.PeriodEnd)
	}
	if n := count(t, pool, `SELECT count(*) FROM subscriptions WHERE plan_key = 'pro' AND "interval" IS NULL AND anchor IS NULL`); n != 1 {
		t.Errorf("%d rows are on the new plan and do not renew, want 1", n)
	}
}

// assignOnce opens a month from noon on, that does not renew.
func assignOnce(t *testing.T, s *subscriptions.Store, pool *pgxpool.Pool) subscriptions.Subscription {
	t.Helper()
	row := assign(t, s, subscriptions.Assignment{PlanKey: "free", Now: noon})
	execute(t, pool, `UPDATE subscriptions SET "interval" = NULL, anchor = NULL`)
	return row
}

func TestAssignAsksForTheIntervalThatAPeriodLacks(t *testing.T) {
	t.Parallel()
	start := instant(t, "2026-11-01")
	for name, a := range map[string]subscriptions.Assignment{
		"to follow it by another": {NewPeriod: true, Now: noon.Add(time.Hour)},
		"to follow it when over":  {Now: noon.AddDate(0, 2, 0)},
		"to count it from a day":  {Start: &start, Now: noon.Add(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := newStore(t)
			apply(t, s)
			assignOnce(t, s, pool)
			a.WorkspaceID, a.PlanKey = "acme", "pro"
			if _, err := s.Assign(t.Context(), a); !errors.Is(err, subscriptions.ErrInvalidAssignment) || !strings.Contains(err.Error(), "interval: is missing") {
				t.Errorf("without an interval: %v, want that it is asked for", err)
			}
			if n := count(t, pool, `SELECT count(*) FROM subscriptions WHERE closed_at IS NULL AND plan_key = 'free'`); n != 1 {
				t.Errorf("%d rows are open and on the old plan, want 1: nothing is written", n)
			}
		})
	}
}

func TestAssignGivesAnIntervalToAPeriodThatHadNone(t *testing.T) {
	t.Parallel()
	start := instant(t, "2026-11-01")
	for name, test := range map[string]struct {
		assignment subscriptions.Assignment
		from, to   string
	}{
		"running, it counts from its start":  {subscriptions.Assignment{Now: noon.Add(time.Hour)}, "2026-11-20T12:00:00Z", "2026-11-30T12:00:00Z"},
		"running, from the day that is told": {subscriptions.Assignment{Start: &start, Now: noon.Add(time.Hour)}, "2026-11-20T12:00:00Z", "2026-11-21"},
		"followed now":                       {subscriptions.Assignment{NewPeriod: true, Now: noon.Add(time.Hour)}, "2026-11-20T13:00:00Z", "2026-11-30T13:00:00Z"},
		"over, it counts from its end":       {subscriptions.Assignment{Now: instant(t, "2027-01-02")}, "2026-12-30T12:00:00Z", "2027-01-09T12:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := newStore(t)
			apply(t, s)
			assignOnce(t, s, pool)
			test.assignment.Interval = "10d"
			wantPeriod(t, assign(t, s, test.assignment), test.from, test.to)
		})
	}
}
