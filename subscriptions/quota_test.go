package subscriptions_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/subscriptions"
)

// monthly are the terms of a plan with a quota of a month.
func monthly(plan string) subscriptions.Snapshot {
	terms := termsOf(plan)
	terms.QuotaInterval = "month"
	return terms
}

// yearOf is Stripe's year from a day on, in terms that are stated, as of an instant.
func yearOf(t *testing.T, last *subscriptions.Subscription, terms subscriptions.Snapshot, at string) subscriptions.Moment {
	t.Helper()
	m := say(last, func(s *subscriptions.SourceState) {
		s.PlanKey = terms.PlanKey
		s.Period = subscriptions.Period{Start: instant(t, "2026-01-31"), End: instant(t, "2027-01-31")}
	})
	m.Terms, m.Now, m.NextID = terms, instant(t, at), "row of "+at
	return m
}

func TestAQuotaIsTheMonthOfItsBillingPeriod(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ start, end, anchor, at, from, to string }{
		"a month that the end of February cut": {"2026-02-28", "2026-03-31", "", "2026-03-30", "2026-02-28", "2026-03-31"},
		"a month that it cut at the end":       {"2026-01-31", "2026-02-28", "", "2026-02-27", "2026-01-31", "2026-02-28"},
		"a year from the 31st":                 {"2026-01-31", "2027-01-31", "", "2026-03-30", "2026-02-28", "2026-03-31"},
		"a year from a leap day":               {"2024-02-29", "2025-02-28", "", "2024-05-01", "2024-04-29", "2024-05-29"},
		"a year after it, by its anchor":       {"2025-02-28", "2026-02-28", "2024-02-29", "2025-03-28", "2025-02-28", "2025-03-29"},
		"two weeks":                            {"2026-03-01", "2026-03-15", "", "2026-03-09", "2026-03-01", "2026-03-15"},
		"ninety days":                          {"2026-03-10", "2026-06-08", "", "2026-06-01", "2026-05-10", "2026-06-08"},
		"before it begins":                     {"2026-03-10", "2026-06-08", "", "2026-01-01", "2026-03-10", "2026-04-10"},
		"after its end":                        {"2026-03-10", "2026-06-08", "", "2027-01-01", "2026-05-10", "2026-06-08"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := say(nil, func(s *subscriptions.SourceState) {
				s.Period = subscriptions.Period{Start: instant(t, c.start), End: instant(t, c.end)}
				if c.anchor != "" {
					s.Anchor, s.Interval = instant(t, c.anchor), subscriptions.Yearly
				}
			})
			m.Terms, m.Now = monthly("pro"), instant(t, c.at)
			row := subscriptions.Transition(m).Row
			wantPeriod(t, row, c.from, c.to)
			if row.Billing != m.Says.Period {
				t.Errorf("billing period is %v, want %v", row.Billing, m.Says.Period)
			}
		})
	}
}

func TestTheSameYearAgainIsNotStaleInItsSeventhMonth(t *testing.T) {
	t.Parallel()
	row := subscriptions.Transition(yearOf(t, nil, monthly("pro"), "2026-08-15")).Row
	wantPeriod(t, row, "2026-07-31", "2026-08-31")
	if again := subscriptions.Transition(yearOf(t, &row, monthly("pro"), "2026-08-16")); again.Verb != "none" {
		t.Errorf("the same state again: %s", again.Verb)
	}
	next := subscriptions.Transition(yearOf(t, &row, monthly("pro"), "2026-08-31"))
	if next.Verb != "roll" || next.Row.Kind != "cycle" || next.Row.UsageEpoch != next.Row.ID || next.Row.Billing != row.Billing {
		t.Fatalf("when its quota is over: %s, %+v", next.Verb, next.Row)
	}
	wantPeriod(t, next.Row, "2026-08-31", "2026-09-30")
	m := yearOf(t, &row, monthly("pro"), "2026-08-16")
	m.Says.Period.Start = m.Says.Period.Start.AddDate(-1, 0, 0)
	if old := subscriptions.Transition(m); old.Verb != "stale" {
		t.Errorf("the year before: %s", old.Verb)
	}
	m.Says.Period = subscriptions.Period{Start: row.Billing.End, End: row.Billing.End.AddDate(1, 0, 0)}
	m.Now = row.Billing.End.Add(time.Hour)
	if year := subscriptions.Transition(m); year.Verb != "roll" || year.Row.Kind != "cycle" || !year.Row.GapFrom.Equal(row.PeriodEnd) {
		t.Errorf("the next year: %s, %+v", year.Verb, year.Row)
	}
}

func TestPlansFlippedInMidPeriodNeverYieldAFreshQuota(t *testing.T) {
	t.Parallel()
	row := subscriptions.Transition(yearOf(t, nil, termsOf("pro"), "2026-01-31")).Row
	wantPeriod(t, row, "2026-01-31", "2027-01-31")
	for flip := range 100 {
		terms, end := monthly("basic"), "2026-08-31"
		if flip%2 == 1 {
			terms, end = termsOf("pro"), "2027-01-31"
		}
		action := subscriptions.Transition(yearOf(t, &row, terms, "2026-08-15"))
		if action.Verb != "amend" || action.Row.ID != row.ID || action.Row.UsageEpoch != row.UsageEpoch {
			t.Fatalf("flip %d: %s, %+v", flip, action.Verb, action.Row)
		}
		row = action.Row
		wantPeriod(t, row, "2026-01-31", end)
	}
}

func TestAQuotaThatIsOverComesWithTheNextPlan(t *testing.T) {
	t.Parallel()
	row := subscriptions.Transition(yearOf(t, nil, monthly("basic"), "2026-08-15")).Row
	next := subscriptions.Transition(yearOf(t, &row, termsOf("pro"), "2026-09-02"))
	if next.Verb != "roll" || next.Row.UsageEpoch != next.Row.ID || next.Row.PlanKey != "pro" {
		t.Fatalf("%s, %+v", next.Verb, next.Row)
	}
	wantPeriod(t, next.Row, "2026-08-31", "2027-01-31")
}

func TestABarredQuotaWaits(t *testing.T) {
	t.Parallel()
	row := subscriptions.Transition(yearOf(t, nil, monthly("pro"), "2026-08-15")).Row
	barred := yearOf(t, &row, monthly("pro"), "2026-10-15")
	barred.Says.Status = "unpaid"
	waits := subscriptions.Transition(barred)
	if waits.Verb != "amend" || !waits.Row.PeriodEnd.Equal(row.PeriodEnd) || waits.Row.DueAt == nil || !waits.Row.DueAt.Equal(row.Billing.End) {
		t.Fatalf("unpaid: %s, %+v", waits.Verb, waits.Row)
	}
	back := subscriptions.Transition(yearOf(t, &waits.Row, monthly("pro"), "2026-11-15"))
	if back.Verb != "roll" || back.Row.UsageEpoch != back.Row.ID || !back.Row.GapFrom.Equal(row.PeriodEnd) {
		t.Fatalf("paid: %s, %+v", back.Verb, back.Row)
	}
	wantPeriod(t, back.Row, "2026-10-31", "2026-11-30")
}

func TestAMovedAnchorToldAfterAQuotaBegan(t *testing.T) {
	t.Parallel()
	row := subscriptions.Transition(yearOf(t, nil, monthly("pro"), "2026-08-31")).Row
	m := yearOf(t, &row, monthly("pro"), "2026-09-01")
	m.Says.Period = subscriptions.Period{Start: instant(t, "2026-08-20"), End: instant(t, "2027-08-20")}
	got := subscriptions.Transition(m)
	if got.Verb != "roll" || got.Row.Kind != "anchor_reset" || got.Row.UsageEpoch != row.UsageEpoch {
		t.Fatalf("%s, %+v", got.Verb, got.Row)
	}
	wantPeriod(t, got.Row, "2026-08-31T00:00:00.001Z", "2026-09-20")
}

func TestAMovedEndMovesTheQuotasEnd(t *testing.T) {
	t.Parallel()
	row := subscriptions.Transition(yearOf(t, nil, monthly("pro"), "2027-01-15")).Row
	wantPeriod(t, row, "2026-12-31", "2027-01-31")
	for end, want := range map[string]string{"2027-01-20": "2027-01-20", "2027-03-05": "2027-01-31", "2026-06-01": "2026-12-31T00:00:00.000001Z"} {
		m := yearOf(t, &row, monthly("pro"), "2027-01-16")
		m.Says.Period.End = instant(t, end)
		got := subscriptions.Transition(m)
		if got.Verb != "amend" || got.Row.UsageEpoch != row.UsageEpoch {
			t.Fatalf("%s: %s, %+v", end, got.Verb, got.Row)
		}
		wantPeriod(t, got.Row, "2026-12-31", want)
	}
}

// chain looks a workspace up where each of its periods ends, and lists their starts
// until there are as many.
func chain(t *testing.T, s *subscriptions.Store, ws string, from time.Time, periods int) []string {
	t.Helper()
	var starts []string
	epochs := map[string]bool{}
	for at := from; len(starts) < periods; {
		info, err := s.PlanInfo(t.Context(), ws, at)
		if err != nil || !info.Period.Contains(at) || epochs[info.UsageEpoch] {
			t.Fatalf("at %s: %+v, %v", at, info, err)
		}
		epochs[info.UsageEpoch] = true
		starts = append(starts, info.Period.Start.Format(time.DateOnly))
		at = info.Period.End
	}
	return starts
}

func TestChainsOfRenewalsKeepTheirDay(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s, "rank: 10", "rank: 10\n    quota_interval: month")
	for ws, c := range map[string]struct {
		start, interval, plan string
		want                  []string
	}{
		"month": {"2019-12-31", "month", "free", []string{
			"2019-12-31", "2020-01-31", "2020-02-29", "2020-03-31", "2020-04-30", "2020-05-31", "2020-06-30", "2020-07-31",
			"2020-08-31", "2020-09-30", "2020-10-31", "2020-11-30", "2020-12-31", "2021-01-31", "2021-02-28", "2021-03-31",
		}},
		"year": {"2016-02-29", "year", "free", []string{"2016-02-29", "2017-02-28", "2018-02-28", "2019-02-28", "2020-02-29", "2021-02-28"}},
		"year-in-months": {"2016-02-29", "year", "pro", []string{
			"2016-02-29", "2016-03-29", "2016-04-29", "2016-05-29", "2016-06-29", "2016-07-29", "2016-08-29", "2016-09-29", "2016-10-29",
			"2016-11-29", "2016-12-29", "2017-01-29", "2017-02-28", "2017-03-29",
		}},
		"days-in-months": {"2020-01-31", "40d", "pro", []string{
			"2020-01-31", "2020-02-29", "2020-03-11", "2020-04-11", "2020-04-20", "2020-05-20", "2020-05-30",
		}},
	} {
		start := instant(t, c.start)
		assign(t, s, subscriptions.Assignment{WorkspaceID: ws, PlanKey: c.plan, Interval: c.interval, Start: &start, Now: start.Add(time.Hour)})
		if diff := cmp.Diff(c.want, chain(t, s, ws, start.Add(time.Hour), len(c.want))); diff != "" {
			t.Errorf("%s: starts (-want +got):\n%s", ws, diff)
		}
	}
	if n := count(t, pool, `SELECT count(*) FROM subscriptions WHERE gap_from IS NOT NULL`); n != 0 {
		t.Errorf("%d rows have a gap", n)
	}
}

func TestAQuotaOfStripesYearRollsByTime(t *testing.T) {
	t.Parallel()
	caughtUp(t, func(t *testing.T, catchUp func(*subscriptions.Store, *pgxpool.Pool)) {
		s, pool := newStore(t)
		apply(t, s, "rank: 10", "rank: 10\n    quota_interval: month")
		state := running(t, pool, "sub_1", "pro")
		state.Period.End = state.Period.Start.AddDate(1, 0, 0)
		row := follow(t, s, state)
		if want := subscriptions.Monthly.Period(state.Period.Start, row.PeriodStart); row.Period() != want || row.Billing != state.Period {
			t.Fatalf("row is %+v", row)
		}
		elapse(t, pool, 100*24*time.Hour)
		// A catalog that comes in the meantime does not change what was paid for.
		apply(t, s, "rank: 10", "rank: 10\n    quota_interval: month", "max_concurrent_executions: 20", "max_concurrent_executions: 30")
		catchUp(s, pool)
		got, at := planInfo(t, s, now(t, pool)), now(t, pool)
		if got.SubscriptionID == row.ID || got.UsageEpoch != got.SubscriptionID || !got.Period.Contains(at) || got.Snapshot.PlanRevision != 1 {
			t.Errorf("after three months: %+v", got)
		}
		rows := history(t, s, "acme")
		if len(rows) != 2 || rows[0].Kind != "cycle" || rows[0].GapFrom == nil || rows[0].Billing != rows[1].Billing {
			t.Errorf("history is %+v", rows)
		}
		wantTold(t, pool, "renewed created", "invalidated 1", "renewed cycle", "invalidated 2")
		state.Period = rows[0].Billing
		if again := follow(t, s, state); again.ID != got.SubscriptionID {
			t.Errorf("what Stripe says again makes %+v", again)
		}
	})
}
