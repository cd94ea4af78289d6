package subscriptions

import "time"

// What becomes of a trial that is over.
const (
	// AfterTrialConvert goes on with the same plan, active and with a fresh quota.
	AfterTrialConvert = "convert"
	// AfterTrialExpire ends the subscription.
	AfterTrialExpire = "expire"
	// AfterTrialDefault goes on as AfterTrialConvert does, on the catalog's default
	// plan.
	AfterTrialDefault = "default"
)

// AfterTrials lists what may become of a trial.
func AfterTrials() []string {
	return []string{AfterTrialConvert, AfterTrialExpire, AfterTrialDefault}
}

// Passage is an open period as its source would tell of it at the instant, had the
// source nothing to say but that time has passed:
//
//	set to end by now                 canceled, at that end
//	its trial is over                 active in the period that runs, or canceled at the
//	                                  trial's end; on AfterTrialDefault PlanKey is empty
//	its billing period is over        the one that runs, if it has an interval
//	anything else                     unchanged
//
// Stripe's subscriptions without an interval are unchanged: Stripe tells of its own
// ends and trials, and may have changed its mind about one. What else passes by
// time is found out by Transition (a quota that is over, a period without news) and
// by Policy.Entitled (a grace).
func Passage(s Subscription, at time.Time) SourceState {
	state, at := stateOf(s), stored(at)
	trial := s.Status == StatusTrialing && !s.Interval.IsZero()
	over := !at.Before(s.Billing.End)
	switch {
	case s.awaitsNews():
	case s.CancelAt != nil && !s.CancelAt.After(at):
		state.Status, state.EndedAt = StatusCanceled, s.CancelAt
	case trial && over && s.AfterTrial == AfterTrialExpire:
		state.Status, state.EndedAt = StatusCanceled, &s.Billing.End
	case trial && over:
		state.convert()
		state.renew(at)
	case over && !s.Interval.IsZero():
		state.renew(at)
	}
	return state
}

// convert ends the trial of a state that goes on.
func (s *SourceState) convert() {
	if s.AfterTrial == AfterTrialDefault {
		s.PlanKey = ""
	}
	s.Status, s.AfterTrial = StatusActive, ""
}

// renew moves a state whose period is over to the one that contains at. It begins
// no earlier than the other ended. The state has an interval.
func (s *SourceState) renew(at time.Time) {
	period := s.Interval.Period(s.Anchor, at)
	s.Period = Period{Start: later(period.Start, s.Period.End), End: period.End}
}

// due is when time alone changes something about an open row after what is known at
// the instant, or nil. What is due already stays due until it is carried out; where a
// period only stops counting, an election at the instant has seen to it.
func (p Policy) due(s Subscription, at time.Time) *time.Time {
	if s.ClosedAt != nil {
		return nil
	}
	var next time.Time
	consider := func(event time.Time, stays bool) {
		if stays || event.After(at) {
			next = earliest(next, event)
		}
	}
	consider(s.PeriodStart, false)
	consider(s.PeriodEnd, s.endsInside(at) && p.statusEntitles(s, at) && !p.withholds(s))
	consider(s.Billing.End, !s.Interval.IsZero() || s.isOverdueOnce() && s.OverdueSince == nil)
	if s.CancelAt != nil && !s.awaitsNews() {
		consider(*s.CancelAt, true)
	}
	if until, ok := p.entitledUntil(s); ok && !until.IsZero() {
		consider(until, false)
	}
	if next.IsZero() {
		return nil
	}
	return &next
}
