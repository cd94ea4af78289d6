package subscriptions_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/subscriptions"
)

// instant reads "2026-01-31" or "2026-01-31T10:00:00Z".
func instant(t testing.TB, s string) time.Time {
	t.Helper()
	if len(s) == len(time.DateOnly) {
		s += "T00:00:00Z"
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func interval(t testing.TB, s string) subscriptions.Interval {
	t.Helper()
	i, err := subscriptions.ParseInterval(s)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestPeriodIsCountedFromTheAnchor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ interval, anchor, at, start, end string }{
		"at the anchor":                 {"month", "2026-01-15", "2026-01-15", "2026-01-15", "2026-02-15"},
		"the end belongs to the next":   {"month", "2026-01-15", "2026-02-15", "2026-02-15", "2026-03-15"},
		"just before the end":           {"month", "2026-01-15", "2026-02-14T23:59:59.999999Z", "2026-01-15", "2026-02-15"},
		"before the anchor":             {"month", "2026-01-15", "2026-01-14", "2025-12-15", "2026-01-15"},
		"31st in February":              {"month", "2026-01-31", "2026-02-28", "2026-02-28", "2026-03-31"},
		"31st before a short February":  {"month", "2026-01-31", "2026-02-27", "2026-01-31", "2026-02-28"},
		"31st in a leap February":       {"month", "2028-01-31", "2028-02-29", "2028-02-29", "2028-03-31"},
		"31st returns after February":   {"month", "2026-01-31", "2026-04-01", "2026-03-31", "2026-04-30"},
		"over the turn of the year":     {"month", "2026-11-30", "2027-01-01", "2026-12-30", "2027-01-30"},
		"time of day is kept":           {"month", "2026-01-31T18:30:00Z", "2026-02-28T18:29:59Z", "2026-01-31T18:30:00Z", "2026-02-28T18:30:00Z"},
		"years later":                   {"month", "2020-08-31", "2026-09-30T05:00:00Z", "2026-09-30", "2026-10-31"},
		"year":                          {"year", "2025-06-10", "2026-06-09", "2025-06-10", "2026-06-10"},
		"leap day a year later":         {"year", "2024-02-29", "2025-03-01", "2025-02-28", "2026-02-28"},
		"leap day returns":              {"year", "2024-02-29", "2028-02-29", "2028-02-29", "2029-02-28"},
		"the day before the leap day":   {"year", "2024-02-29", "2028-02-28T23:00:00Z", "2027-02-28", "2028-02-29"},
		"days are exact":                {"10d", "2026-01-01", "2026-01-11", "2026-01-11", "2026-01-21"},
		"hours before the anchor":       {"6h", "2026-01-01", "2025-12-31T23:59:59Z", "2025-12-31T18:00:00Z", "2026-01-01"},
		"minutes":                       {"1m", "2026-01-01T00:00:30Z", "2026-01-01T00:05:29Z", "2026-01-01T00:04:30Z", "2026-01-01T00:05:30Z"},
		"summer time does not exist":    {"1d", "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z", "2026-03-29T12:00:00Z", "2026-03-30T12:00:00Z"},
		"another zone is the same time": {"month", "2026-02-01T00:30:00+01:00", "2026-02-28T23:00:00Z", "2026-01-31T23:30:00Z", "2026-02-28T23:30:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := interval(t, c.interval).Period(instant(t, c.anchor), instant(t, c.at))
			want := subscriptions.Period{Start: instant(t, c.start), End: instant(t, c.end)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("period (-want +got):\n%s", diff)
			}
			if got.Start.Location() != time.UTC || got.End.Location() != time.UTC {
				t.Errorf("period %v is not in UTC", got)
			}
		})
	}
}

func TestCalendarMonth(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]subscriptions.Period{
		"2026-12-31T23:59:59.9Z":    {Start: instant(t, "2026-12-01"), End: instant(t, "2027-01-01")},
		"2026-02-01":                {Start: instant(t, "2026-02-01"), End: instant(t, "2026-03-01")},
		"2026-03-01T00:30:00+01:00": {Start: instant(t, "2026-02-01"), End: instant(t, "2026-03-01")},
	} {
		if diff := cmp.Diff(want, subscriptions.CalendarMonth(instant(t, at))); diff != "" {
			t.Errorf("month of %s (-want +got):\n%s", at, diff)
		}
	}
}

func TestParseInterval(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"month", "year", "1d", "3660d", "12h", "30m", "87840h"} {
		if got := interval(t, good).String(); got != good {
			t.Errorf("interval %q reads as %q", good, got)
		}
	}
	for _, bad := range []string{
		"", "d", "0d", "-1d", "+1d", "01d", "1.5h", "1w", "1 d", " 1d", "months", "Month", "3661d", "99999999999d", "٣d", "1dd", "1s",
	} {
		if got, err := subscriptions.ParseInterval(bad); err == nil {
			t.Errorf("interval %q is read as %q, want an error", bad, got)
		}
	}
}

// FuzzPeriod holds the periods of an interval to what makes them periods: they
// contain the instant, follow each other without gap or overlap, and keep the
// anchor's day.
func FuzzPeriod(f *testing.F) {
	f.Add(int64(1_769_817_600), int64(1_772_236_800), uint8(0), uint16(1))
	f.Add(int64(1_709_164_800), int64(1_898_467_200), uint8(1), uint16(1))
	f.Add(int64(0), int64(-1), uint8(2), uint16(10))
	f.Add(int64(1_700_000_000), int64(1_900_000_001), uint8(4), uint16(7))
	f.Fuzz(func(t *testing.T, anchorSeconds, atSeconds int64, unit uint8, n uint16) {
		const centuries = 8_000_000_000
		anchor := time.Unix(anchorSeconds%centuries, 0).UTC()
		at := time.Unix(atSeconds%centuries, atSeconds%1000*1_000_000).UTC()
		i := fuzzInterval(t, unit, n)

		p := i.Period(anchor, at)
		if !p.Contains(at) || !p.Start.Before(p.End) {
			t.Fatalf("%s from %s: period %v does not contain %s", i, anchor, p, at)
		}
		for _, inside := range []time.Time{p.Start, p.End.Add(-1)} {
			if got := i.Period(anchor, inside); got != p {
				t.Fatalf("%s from %s: %s is in %v and in %v", i, anchor, inside, p, got)
			}
		}
		if next := i.Period(anchor, p.End); !next.Start.Equal(p.End) {
			t.Fatalf("%s from %s: %v is followed by %v", i, anchor, p, next)
		}
		if before := i.Period(anchor, p.Start.Add(-1)); !before.End.Equal(p.Start) {
			t.Fatalf("%s from %s: %v comes after %v", i, anchor, p, before)
		}
		if i == subscriptions.Monthly || i == subscriptions.Yearly {
			lastDay := time.Date(p.Start.Year(), p.Start.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
			if want := min(anchor.Day(), lastDay); p.Start.Day() != want {
				t.Fatalf("%s from %s: %v starts on day %d, want %d", i, anchor, p, p.Start.Day(), want)
			}
		}
	})
}

func fuzzInterval(t *testing.T, unit uint8, n uint16) subscriptions.Interval {
	t.Helper()
	switch unit % 5 {
	case 0:
		return subscriptions.Monthly
	case 1:
		return subscriptions.Yearly
	default:
		return interval(t, strconv.Itoa(int(n%3660)+1)+string("dhm"[unit%5-2]))
	}
}
