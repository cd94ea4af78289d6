package subscriptions

import "time"

// Verb is what a transition does to a subscription's rows.
type Verb string

// The verbs.
const (
	// VerbNone writes nothing: nothing is new, the subscription has ended before,
	// or it is unknown and not entitled.
	VerbNone Verb = "none"
	// VerbStale writes nothing: the source's word is older than what is known.
	VerbStale Verb = "stale"
	// VerbInsert opens a subscription's first period.
	VerbInsert Verb = "insert"
	// VerbRoll closes the open period at the start of the next one and opens that:
	// the next billing period, or the next quota inside the same one.
	VerbRoll Verb = "roll"
	// VerbAmend changes the open period; its id and its usage stay.
	VerbAmend Verb = "amend"
	// VerbClose ends the subscription for good.
	VerbClose Verb = "close"
)

// Moment is all that a transition depends on.
type Moment struct {
	// Last is the newest row of the subscription, open or closed; nil without one.
	Last *Subscription
	Says SourceState
	// Terms are those of Says.PlanKey now. A running period on the same plan keeps
	// the terms it was opened with, unless Retake is set.
	Terms  Snapshot
	Retake bool
	Policy Policy
	Now    time.Time
	// NextID is the id that a new row gets.
	NextID string
}

// Action is what is to be written.
type Action struct {
	Verb Verb
	// Row is the new row of an insert or roll, else the row as it is to stand. It
	// is the zero Subscription if there is none.
	Row Subscription
	// Closes is the row that a roll closes, nil otherwise.
	Closes *Subscription
	// Changes are the fields that an amendment or an end changes.
	Changes []FieldChange
	// UnknownStatus is a status that this package does not know. The last known
	// one stays in force.
	UnknownStatus string
}

// Transition compares what is known with what the source says and tells what to
// write. It is pure: the same moment gives the same action.
//
//	no row, status entitled or incomplete   insert
//	no row, anything else                   none
//	the last row has ended                  none
//	terminal status                         close, at the end that the source states, else now
//	billing start later than the row's      roll; one row however much time has passed
//	billing start earlier than the row's    stale
//	same start, the row's quota is over     roll, inside the billing period
//	same start, something differs           amend
//	same start, nothing differs             none
//
// A row's own period is as much of the billing period as one quota lasts, around
// now. A change of the plan in mid-period gives the row another end and leaves its
// start and its usage as they are: from a year to months, the running month ends
// with what the year has used; from months to a year, the rest of the year goes on
// with what the month has used.
func Transition(m Moment) Action {
	m.Says, m.Now = m.Says.inUTC(), stored(m.Now)
	var unknown string
	stands := standingOf(m.Says.Status)
	if stands == standingUnknown {
		unknown = m.Says.Status
		if m.Last != nil {
			m.Says.Status = m.Last.Status
		}
	}
	action := m.action(stands)
	action.UnknownStatus = unknown
	if action.Verb != VerbNone && action.Verb != VerbStale {
		action.Row.DueAt = m.Policy.due(action.Row, m.Now)
	}
	return action
}

func (m Moment) action(stands standing) Action {
	switch {
	case m.Last == nil:
		return m.insert()
	case m.Last.ClosedAt != nil:
		return Action{Verb: VerbNone, Row: *m.Last}
	case stands == standingEnded:
		return m.end()
	case m.Says.Period.Start.After(m.Last.Billing.Start):
		return m.roll()
	case m.Says.Period.Start.Before(m.Last.Billing.Start):
		return Action{Verb: VerbStale, Row: *m.Last}
	default:
		return m.within()
	}
}

func (m Moment) insert() Action {
	row := m.row()
	row.lay(m.Now, row.Billing.Start)
	row.Kind, row.UsageEpoch = KindCreated, row.ID
	if row.Status != StatusIncomplete && !m.Policy.statusEntitles(row, m.Now) {
		return Action{Verb: VerbNone}
	}
	return Action{Verb: VerbInsert, Row: row}
}

// row is a new row of what the source says; its own period is yet to be laid.
func (m Moment) row() Subscription {
	row := Subscription{
		ID: m.NextID, WorkspaceID: m.Says.WorkspaceID, Source: m.Says.Key.Source,
		SourceID: m.Says.Key.SourceID, Account: m.Says.Key.Account, Livemode: m.Says.Key.Livemode,
		Billing: m.Says.Period,
	}
	m.update(&row)
	row.setTerms(m.Terms)
	return row
}

// update takes over what an amendment may change, besides the terms and the period.
func (m Moment) update(row *Subscription) {
	row.UnpaidSince = m.unpaidSince()
	row.Status, row.PaymentState, row.Quantity = m.Says.Status, m.Says.PaymentState, m.Says.Quantity
	row.Billing.End, row.Interval, row.Anchor = m.Says.Period.End, m.Says.Interval, m.Says.Anchor
	row.CancelAt, row.AfterTrial = m.Says.CancelAt, m.Says.AfterTrial
	row.SourceFacts = m.Says.SourceFacts
	row.Held = row.Held && row.unpaid()
	row.OverdueSince = m.overdueSince(*row)
}

// unpaidSince is where the first unpaid period began: this one, unless the one
// before was past due already.
func (m Moment) unpaidSince() *time.Time {
	switch {
	case standingOf(m.Says.Status) != standingGrace:
		return nil
	case m.Last != nil && m.Last.UnpaidSince != nil:
		return m.Last.UnpaidSince
	default:
		return &m.Says.Period.Start
	}
}

// overdueSince is when the billing period ended, if its source should have told of
// the next one by now.
func (m Moment) overdueSince(row Subscription) *time.Time {
	if !row.isOverdueOnce() || m.Now.Before(row.Billing.End) {
		return nil
	}
	return &row.Billing.End
}

// roll opens the next billing period. One that is withheld begins with its first
// quota: what was used is not its business before it is paid.
func (m Moment) roll() Action {
	row, last := m.row(), *m.Last
	row.Held = m.Policy.HoldUnpaid && row.unpaid()
	at, from := m.Now, row.Billing.Start
	if row.Held {
		at = from
	}
	if !from.After(last.PeriodStart) {
		from = last.PeriodStart.Add(time.Millisecond) // told late: a quota began meanwhile
	}
	row.lay(at, from)
	row.Kind, row.UsageEpoch = m.kind(), last.UsageEpoch
	if m.Policy.resets(row.Kind) || last.endsInside(row.PeriodStart) {
		row.UsageEpoch = row.ID
	}
	return follow(row, last)
}

// follow is the roll from one row to another.
func follow(row, last Subscription) Action {
	row.PreviousID = &last.ID
	if row.PeriodStart.After(last.PeriodEnd) {
		row.GapFrom = &last.PeriodEnd
	}
	last.ClosedAt, last.DueAt = &row.PeriodStart, nil
	return Action{Verb: VerbRoll, Row: row, Closes: &last}
}

// kind is how the billing period after the last one came about. A plan that changes
// where the period would have ended anyway is an ordinary cycle.
func (m Moment) kind() string {
	switch {
	case m.Says.Kind != "":
		return m.Says.Kind
	case m.Last.Status == StatusTrialing && m.Says.Status != StatusTrialing:
		return KindTrialEnd
	case m.Last.Status == StatusPaused && m.Says.Status != StatusPaused:
		return KindResume
	case !m.Says.Period.Start.Before(m.Last.Billing.End):
		return KindCycle
	case m.Says.PlanKey != m.Last.PlanKey:
		return KindPlanChange
	default:
		return KindAnchorReset
	}
}

// within brings the row to what the source says of the billing period that is known.
func (m Moment) within() Action {
	row := *m.Last
	m.update(&row)
	if m.Retake || m.Says.PlanKey != row.PlanKey {
		row.setTerms(m.Terms)
	}
	// It is not over before it began, though the source may have cut it short there.
	row.Billing.End = later(row.Billing.End, row.PeriodStart.Add(time.Microsecond))
	quota := row.quotaAt(later(m.Now, row.PeriodStart))
	switch over := m.quotaOver(row, quota); {
	case over && m.Policy.statusEntitles(row, m.Now) && !m.Policy.withholds(row):
		return m.nextQuota(row)
	case over:
		row.PeriodEnd = earlier(row.PeriodEnd, row.Billing.End)
	default:
		row.PeriodEnd = quota.End
	}
	changes := diffText(subscriptionText(*m.Last), subscriptionText(row))
	if len(changes) == 0 {
		return Action{Verb: VerbNone, Row: *m.Last}
	}
	return Action{Verb: VerbAmend, Row: row, Changes: changes}
}

// quotaOver reports whether the quota of the last row has run out by time while its
// billing period goes on, or does now that the source has moved its end.
func (m Moment) quotaOver(row Subscription, quota Period) bool {
	if m.Now.Before(m.Last.PeriodEnd) || !row.Billing.End.After(m.Last.PeriodEnd) {
		return false
	}
	monthly := m.Last.Snapshot.QuotaInterval != ""
	return m.Last.PeriodEnd.Before(m.Last.Billing.End) || monthly && quota.Start.After(m.Last.PeriodStart)
}

// nextQuota opens the next row inside the billing period, with a fresh quota.
func (m Moment) nextQuota(row Subscription) Action {
	last := *m.Last
	row.ID, row.UsageEpoch, row.Kind = m.NextID, m.NextID, KindCycle
	row.ClosedAt, row.GapFrom, row.CreatedAt = nil, nil, time.Time{}
	row.lay(m.Now, last.PeriodEnd)
	return follow(row, last)
}

// end closes the row. It is not closed before it began, though the source may say
// that the subscription ended in the period before.
func (m Moment) end() Action {
	row := *m.Last
	row.EndedAt = m.Says.EndedAt
	if row.EndedAt == nil {
		row.EndedAt = &m.Now
	}
	closed := later(*row.EndedAt, row.PeriodStart)
	row.ClosedAt, row.Status, row.PaymentState = &closed, m.Says.Status, m.Says.PaymentState
	row.UnpaidSince, row.OverdueSince, row.Held = nil, nil, false
	return Action{Verb: VerbClose, Row: row, Changes: diffText(subscriptionText(*m.Last), subscriptionText(row))}
}
