package subscriptions

import (
	"fmt"
	"strconv"
	"time"
)

// maxSpan bounds an interval given in days, hours or minutes: ten years.
const maxSpan = 3660 * 24 * time.Hour

// Interval is the length of a billing period: calendar months counted from an
// anchor, or an exact span of time. The zero Interval is no interval: its
// periods do not exist and a row with it does not renew by itself.
type Interval struct {
	months int
	span   time.Duration
	text   string
}

// The intervals of the calendar.
var (
	Monthly = Interval{months: 1, text: "month"}
	Yearly  = Interval{months: 12, text: "year"}
)

// ParseInterval reads "month", "year" or a whole number of days, hours or
// minutes such as "10d", "12h", "30m", up to 3660 days. The error states the
// allowed forms.
func ParseInterval(s string) (Interval, error) {
	switch s {
	case Monthly.text:
		return Monthly, nil
	case Yearly.text:
		return Yearly, nil
	}
	unit, ok := spanUnit(s)
	if !ok {
		return Interval{}, fmt.Errorf("interval %q: must be month, year or a number with d, h or m, such as 10d", s)
	}
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 31)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != s[:len(s)-1] {
		return Interval{}, fmt.Errorf("interval %q: the number before %q must be a whole number from 1", s, s[len(s)-1:])
	}
	if n > uint64(maxSpan/unit) {
		return Interval{}, fmt.Errorf("interval %q: must be at most 3660d", s)
	}
	return Interval{span: time.Duration(n) * unit, text: s}, nil
}

func spanUnit(s string) (time.Duration, bool) {
	if s == "" {
		return 0, false
	}
	switch s[len(s)-1] {
	case 'd':
		return 24 * time.Hour, true
	case 'h':
		return time.Hour, true
	case 'm':
		return time.Minute, true
	default:
		return 0, false
	}
}

// String is the form that ParseInterval reads, empty for the zero Interval.
func (i Interval) String() string { return i.text }

// IsZero reports whether there is no interval.
func (i Interval) IsZero() bool { return i.months == 0 && i.span == 0 }

// Period is the period that contains at, of those that follow each other
// without gap from the anchor on, and before it. All of it is UTC, to the
// microsecond.
//
// Months are counted from the anchor, never from the period before, so that the
// anchor's day survives short months: 31 Jan, 28 Feb, 31 Mar. A day that the
// month lacks becomes the month's last. Days are 24 hours; summer time does not
// exist in UTC. Period panics on the zero Interval.
func (i Interval) Period(anchor, at time.Time) Period {
	if i.IsZero() {
		panic("subscriptions: Period of the zero Interval")
	}
	anchor, at = anchor.UTC().Truncate(time.Microsecond), at.UTC()
	if i.span > 0 {
		step := i.span.Microseconds()
		n := floorDiv(at.UnixMicro()-anchor.UnixMicro(), step)
		start := time.UnixMicro(anchor.UnixMicro() + n*step).UTC()
		return Period{Start: start, End: start.Add(i.span)}
	}
	n := floorDiv(monthIndex(at)-monthIndex(anchor), int64(i.months)) * int64(i.months)
	if addMonths(anchor, n).After(at) {
		n -= int64(i.months)
	}
	return Period{Start: addMonths(anchor, n), End: addMonths(anchor, n+int64(i.months))}
}

// CalendarMonth is the month of UTC that contains at.
func CalendarMonth(at time.Time) Period {
	at = at.UTC()
	start := time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
	return Period{Start: start, End: start.AddDate(0, 1, 0)}
}

// addMonths is the anchor's day and time of day n months later, or the last day
// of that month if it is shorter.
func addMonths(anchor time.Time, n int64) time.Time {
	index := monthIndex(anchor) + n
	year, month := int(floorDiv(index, 12)), time.Month(index-floorDiv(index, 12)*12+1)
	lastDay := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	hour, minute, second := anchor.Clock()
	return time.Date(year, month, min(anchor.Day(), lastDay), hour, minute, second, anchor.Nanosecond(), time.UTC)
}

// monthIndex numbers the months from January of year 0.
func monthIndex(t time.Time) int64 { return int64(t.Year())*12 + int64(t.Month()) - 1 }

// floorDiv is a/b rounded down, for a positive b.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
