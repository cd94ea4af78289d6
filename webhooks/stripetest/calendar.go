package stripetest

import "time"

const day = 24 * time.Hour

// Interval is the unit of a price's billing period.
type Interval string

// The intervals of Stripe.
const (
	Day   Interval = "day"
	Week  Interval = "week"
	Month Interval = "month"
	Year  Interval = "year"
)

// step is the n-th boundary counted from an anchor. The anchor's day of the month
// survives short months: 31 Jan, 29 Feb, 31 Mar.
func (p Price) step(anchor time.Time, n int) time.Time {
	n *= p.Count
	switch p.Interval {
	case Day:
		return anchor.Add(time.Duration(n) * day)
	case Week:
		return anchor.Add(time.Duration(n) * 7 * day)
	case Year:
		return addMonths(anchor, 12*n)
	default:
		return addMonths(anchor, n)
	}
}

// boundaryAfter is the first boundary later than t.
func (p Price) boundaryAfter(anchor, t time.Time) time.Time {
	length := p.step(anchor, 1).Sub(anchor)
	n := int(t.Sub(anchor) / length)
	for p.step(anchor, n-1).After(t) {
		n--
	}
	for !p.step(anchor, n).After(t) {
		n++
	}
	return p.step(anchor, n)
}

func addMonths(t time.Time, n int) time.Time {
	year, month, date := t.Date()
	first := time.Date(year, month+time.Month(n), 1, t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(date, last)-1)
}

// share is the part of an amount that falls on [from, to) of the period [start, end),
// rounded half up.
func share(amount int64, from, to, start, end time.Time) int64 {
	part, whole := int64(to.Sub(from)/time.Second), int64(end.Sub(start)/time.Second)
	if whole <= 0 || part >= whole {
		return amount
	}
	return (2*amount*max(part, 0) + whole) / (2 * whole)
}
