package subscriptions

import "time"

// ClaimDue is how a worker finds what is due.
const ClaimDue = claimDue

// Due is when time alone changes something next.
func (p Policy) Due(s Subscription, at time.Time) *time.Time { return p.due(s, at) }
