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
	// VerbRoll closes the open period at the start of the next one and opens that.
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
//	period start later than the row's       roll; one row however much time has passed
//	period start earlier than the row's     stale
//	same start, something differs           amend
//	same start, nothing differs             none
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
	case m.Says.Period.Start.After(m.Last.PeriodStart):
		return m.roll()
	case m.Says.Period.Start.Before(m.Last.PeriodStart):
		return Action{Verb: VerbStale, Row: *m.Last}
	default:
		return m.amend()
	}
}

func (m Moment) insert() Action {
	row := m.row()
	row.Kind, row.UsageEpoch = KindCreated, row.ID
	if row.Status != StatusIncomplete && !m.Policy.Entitled(row, m.Now) {
		return Action{Verb: VerbNone}
	}
	return Action{Verb: VerbInsert, Row: row}
}

// row is a new row of what the source says.
func (m Moment) row() Subscription {
	row := Subscription{
		ID: m.NextID, WorkspaceID: m.Says.WorkspaceID, Source: m.Says.Key.Source,
		SourceID: m.Says.Key.SourceID, Account: m.Says.Key.Account, Livemode: m.Says.Key.Livemode,
		PeriodStart: m.Says.Period.Start,
	}
	m.update(&row)
	row.setTerms(m.Terms)
	return row
}

// update takes over what an amendment may change, besides the terms.
func (m Moment) update(row *Subscription) {
	row.UnpaidSince = m.unpaidSince()
	row.Status, row.PaymentState, row.Quantity = m.Says.Status, m.Says.PaymentState, m.Says.Quantity
	row.PeriodEnd, row.Interval, row.Anchor = m.Says.Period.End, m.Says.Interval, m.Says.Anchor
	row.CancelAt = m.Says.CancelAt
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

func (m Moment) roll() Action {
	row, last := m.row(), *m.Last
	row.Kind, row.PreviousID, row.UsageEpoch = m.kind(), &last.ID, last.UsageEpoch
	if m.Policy.resets(row.Kind) {
		row.UsageEpoch = row.ID
	}
	if row.PeriodStart.After(last.PeriodEnd) {
		row.GapFrom = &last.PeriodEnd
	}
	last.ClosedAt = &row.PeriodStart
	return Action{Verb: VerbRoll, Row: row, Closes: &last}
}

// kind is how the period after the last row came about. A plan that changes where
// the period would have ended anyway is an ordinary cycle.
func (m Moment) kind() string {
	switch {
	case m.Says.Kind != "":
		return m.Says.Kind
	case m.Last.Status == StatusTrialing && m.Says.Status != StatusTrialing:
		return KindTrialEnd
	case m.Last.Status == StatusPaused && m.Says.Status != StatusPaused:
		return KindResume
	case !m.Says.Period.Start.Before(m.Last.PeriodEnd):
		return KindCycle
	case m.Says.PlanKey != m.Last.PlanKey:
		return KindPlanChange
	default:
		return KindAnchorReset
	}
}

func (m Moment) amend() Action {
	row := *m.Last
	m.update(&row)
	if m.Retake || m.Says.PlanKey != row.PlanKey {
		row.setTerms(m.Terms)
	}
	changes := diffText(subscriptionText(*m.Last), subscriptionText(row))
	if len(changes) == 0 {
		return Action{Verb: VerbNone, Row: *m.Last}
	}
	return Action{Verb: VerbAmend, Row: row, Changes: changes}
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
	row.UnpaidSince = nil
	return Action{Verb: VerbClose, Row: row, Changes: diffText(subscriptionText(*m.Last), subscriptionText(row))}
}
