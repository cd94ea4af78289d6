package subscriptions

import "time"

// The statuses of a subscription. Any other is unknown: it changes nothing about
// what is known already, and is reported.
const (
	StatusTrialing          = "trialing"
	StatusActive            = "active"
	StatusPastDue           = "past_due"
	StatusIncomplete        = "incomplete"
	StatusUnpaid            = "unpaid"
	StatusPaused            = "paused"
	StatusCanceled          = "canceled"
	StatusIncompleteExpired = "incomplete_expired"
	// statusNone is PlanInfo.Status without a subscription.
	statusNone = "none"
)

// The states of a period's payment.
const (
	PaymentNone    = "none"
	PaymentPending = "pending"
	PaymentPaid    = "paid"
	PaymentFailed  = "failed"
)

// standing is what a status means for what the workspace may use.
type standing int

const (
	standingUnknown standing = iota
	// standingEntitled: the period counts.
	standingEntitled
	// standingGrace: it counts until the grace is over.
	standingGrace
	// standingBarred: it does not count, and may again.
	standingBarred
	// standingEnded: it is over for good.
	standingEnded
)

// standingOf is the table of what each status means; there is no other.
func standingOf(status string) standing {
	switch status {
	case StatusTrialing, StatusActive:
		return standingEntitled
	case StatusPastDue:
		return standingGrace
	case StatusIncomplete, StatusUnpaid, StatusPaused:
		return standingBarred
	case StatusCanceled, StatusIncompleteExpired:
		return standingEnded
	default:
		return standingUnknown
	}
}

// DefaultPastDueGrace is how long a past_due subscription counts, from the start
// of the period that is not paid.
const DefaultPastDueGrace = 14 * 24 * time.Hour

// DefaultOverdueGrace is how long a period goes on after its end while its source
// has said nothing of the next one.
const DefaultOverdueGrace = 72 * time.Hour

// Policy is what an installation decides about transitions. The zero Policy has
// the defaults.
type Policy struct {
	// ResetOnAnchorReset gives a fresh quota to a period that begins early because
	// the anchor was moved; by default the usage goes on.
	ResetOnAnchorReset bool
	// ResetOnPlanChange does so for one that begins early because of another plan.
	// By default the usage goes on, so that nobody resets a quota by flipping plans.
	ResetOnPlanChange bool
	// HoldUnpaid leaves the workspace on the period before until the next one is
	// paid; by default a period counts before it is paid.
	HoldUnpaid bool
	// PastDueGrace is DefaultPastDueGrace if 0; below 0 there is none.
	PastDueGrace time.Duration
	// OverdueGrace is DefaultOverdueGrace if 0; below 0 there is none.
	OverdueGrace time.Duration
	// HoldDisputed lets a subscription count for nothing while a dispute has withdrawn
	// its money; by default a dispute is noted and changes nothing.
	HoldDisputed bool
}

// Entitled reports whether an open period lets the workspace use its plan at the
// instant: by its status, and by what time alone has made of it.
func (p Policy) Entitled(s Subscription, at time.Time) bool {
	until, ok := p.entitledUntil(s)
	return ok && (until.IsZero() || at.Before(until))
}

// entitledUntil is when an open period stops counting though nothing is heard of
// it; zero is never. It is false for one that does not count at all.
//
//	on a test clock                      never
//	past_due                             the grace from the first unpaid period
//	set to end                           that end; Stripe tells the end of its own
//	period over, without an interval     its end, and for Stripe's the overdue grace
func (p Policy) entitledUntil(s Subscription) (time.Time, bool) {
	var until time.Time
	if s.TestClock || p.HoldDisputed && s.Disputed {
		return until, p.statusEntitles(s, until)
	}
	if !s.awaitsNews() && s.CancelAt != nil {
		until = *s.CancelAt
	}
	if s.awaitsNews() {
		until = s.Billing.End.Add(p.overdueGrace())
	} else if s.Interval.IsZero() {
		until = earliest(until, s.Billing.End)
	}
	switch standingOf(s.Status) {
	case standingEntitled:
		return until, true
	case standingGrace:
		return earliest(until, p.graceEnd(s)), true
	default:
		return time.Time{}, false
	}
}

// statusEntitles is Entitled by the status alone.
func (p Policy) statusEntitles(s Subscription, at time.Time) bool {
	switch standing := standingOf(s.Status); {
	case p.HoldDisputed && s.Disputed:
		return false
	case standing == standingEntitled:
		return true
	case standing == standingGrace:
		return s.TestClock || at.Before(p.graceEnd(s))
	default:
		return false
	}
}

func (p Policy) graceEnd(s Subscription) time.Time {
	since := s.Billing.Start
	if s.UnpaidSince != nil {
		since = *s.UnpaidSince
	}
	return since.Add(orDefault(p.PastDueGrace, DefaultPastDueGrace))
}

func (p Policy) overdueGrace() time.Duration { return orDefault(p.OverdueGrace, DefaultOverdueGrace) }

// orDefault is a grace as stated: 0 is the default, and below 0 is none.
func orDefault(stated, byDefault time.Duration) time.Duration {
	if stated == 0 {
		return byDefault
	}
	return max(stated, 0)
}

// Held reports whether a period waits for its payment while the workspace stays on
// the one before: no longer than it would last itself.
func (p Policy) Held(s Subscription, at time.Time) bool {
	return p.withholds(s) && p.Entitled(s, at) && at.Before(s.Billing.End)
}

// withholds reports whether a period counts only when it is paid.
func (p Policy) withholds(s Subscription) bool { return p.HoldUnpaid && s.Held }

// resets reports whether a period of the kind starts a fresh quota.
func (p Policy) resets(kind string) bool {
	switch kind {
	case KindAnchorReset:
		return p.ResetOnAnchorReset
	case KindPlanChange:
		return p.ResetOnPlanChange
	default:
		return true
	}
}
