package subscriptions

import "time"

// quotaAt is as much of the row's billing period as one quota lasts: all of it, or
// with a quota interval the month that contains the instant. An instant outside of
// the billing period stands for the nearest in it.
func (s Subscription) quotaAt(at time.Time) Period {
	if s.Snapshot.QuotaInterval == "" {
		return s.Billing
	}
	at = later(at, s.Billing.Start)
	if !at.Before(s.Billing.End) {
		at = s.Billing.End.Add(-time.Microsecond)
	}
	month := Monthly.Period(s.quotaAnchor(), at)
	return Period{Start: later(month.Start, s.Billing.Start), End: earlier(month.End, s.Billing.End)}
}

// quotaAnchor is what the months of the quota are counted from, so that one of them
// begins with the billing period. Where a short month cut the day of its start, the
// anchor or the end still has it: the month from 28 Feb to 31 Mar is one, and not
// one with three days of another.
func (s Subscription) quotaAnchor() time.Time {
	for _, anchor := range []time.Time{s.Anchor, s.Billing.End} {
		if !anchor.IsZero() && Monthly.Period(anchor, s.Billing.Start).Start.Equal(s.Billing.Start) {
			return anchor
		}
	}
	return s.Billing.Start
}

// lay sets the row's own period to the quota around the instant. It begins no
// earlier than from, where the row before it ends.
func (s *Subscription) lay(at, from time.Time) {
	s.Billing.End = later(s.Billing.End, from.Add(time.Microsecond))
	quota := s.quotaAt(later(at, from))
	s.PeriodStart, s.PeriodEnd = later(quota.Start, from), quota.End
}

// endsInside reports whether the row's period is over and its billing period went
// on after it.
func (s Subscription) endsInside(at time.Time) bool {
	return s.PeriodEnd.Before(s.Billing.End) && !at.Before(s.PeriodEnd)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
