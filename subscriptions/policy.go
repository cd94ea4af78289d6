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
}

// Entitled reports whether an open period's status lets the workspace use its
// plan at the instant.
func (p Policy) Entitled(s Subscription, at time.Time) bool {
	switch standingOf(s.Status) {
	case standingEntitled:
		return true
	case standingGrace:
		since := s.PeriodStart
		if s.UnpaidSince != nil {
			since = *s.UnpaidSince
		}
		return at.Before(since.Add(p.grace()))
	default:
		return false
	}
}

func (p Policy) grace() time.Duration {
	if p.PastDueGrace == 0 {
		return DefaultPastDueGrace
	}
	return max(p.PastDueGrace, 0)
}

// Held reports whether an entitled period waits for its payment while the
// workspace stays on the one before.
func (p Policy) Held(s Subscription, at time.Time) bool {
	unpaid := s.PaymentState == PaymentPending || s.PaymentState == PaymentFailed
	return p.HoldUnpaid && unpaid && s.PreviousID != nil && p.Entitled(s, at)
}

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
