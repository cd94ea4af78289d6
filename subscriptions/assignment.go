package subscriptions

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// Assignment puts a workspace on a plan by hand.
type Assignment struct {
	WorkspaceID string
	PlanKey     string
	// Source is SourceEnterprise or SourceSystem; empty is SourceEnterprise,
	// since what a person assigns is most often a contract.
	Source Source
	// Interval is a form of ParseInterval. Empty keeps that of the open period;
	// for a new subscription it is month. An open period that has none has to be
	// given one before it can be followed by another or counted from a Start.
	Interval string
	// Start anchors the periods; it must not be later than now. The running
	// period is the one that contains now: those before it are not invented. Nil
	// keeps the anchor, or anchors a new subscription now.
	Start *time.Time
	// NewPeriod closes the open period now and opens one with a fresh quota,
	// instead of amending it.
	NewPeriod bool
	// Trial, a form of ParseInterval such as 14d, begins with a trial of that length, in
	// a new subscription or with NewPeriod; for one that is on trial it is how long the
	// trial is in all. The periods of Interval are counted from its end.
	Trial string
	// AfterTrial is what becomes of the trial when it is over: AfterTrialConvert,
	// AfterTrialExpire or AfterTrialDefault. Empty keeps what the open trial has; for
	// a new one it is AfterTrialConvert.
	AfterTrial string
	// Now is the moment of the assignment; zero is the database's clock.
	Now time.Time
	// Cause is written beside each amendment; empty is "assign".
	Cause string
}

// terms are an assignment's values after they were checked.
type terms struct {
	source     Source
	interval   Interval
	start      time.Time
	trial      Interval
	afterTrial string
	cause      string
}

// check reports every fault of the assignment at once, each naming its field and
// what is allowed.
func (a Assignment) check() (terms, error) {
	t := terms{source: a.Source, cause: a.Cause, afterTrial: a.AfterTrial}
	var faults []error
	if !schemas.ValidID(a.WorkspaceID) {
		faults = append(faults, fmt.Errorf("workspace %q: %s", a.WorkspaceID, idRule))
	}
	if a.PlanKey == "" {
		faults = append(faults, errors.New("plan: is missing; name a plan of the catalog"))
	}
	switch a.Source {
	case "":
		t.source = SourceEnterprise
	case SourceEnterprise, SourceSystem:
	default:
		faults = append(faults, fmt.Errorf("source %q: must be enterprise or system", a.Source))
	}
	if a.Interval != "" {
		var err error
		if t.interval, err = ParseInterval(a.Interval); err != nil {
			faults = append(faults, err)
		}
	}
	if a.Trial != "" {
		var err error
		if t.trial, err = ParseInterval(a.Trial); err != nil {
			faults = append(faults, fmt.Errorf("trial: %w", err))
		}
	}
	if a.AfterTrial != "" && !slices.Contains(AfterTrials(), a.AfterTrial) {
		faults = append(faults, fmt.Errorf("after trial %q: must be convert, expire or default", a.AfterTrial))
	}
	if a.Start != nil {
		t.start = a.Start.UTC().Truncate(time.Millisecond)
		if t.start.Year() < 1970 {
			faults = append(faults, fmt.Errorf("start %s: must not be before 1970", t.start.Format(time.RFC3339)))
		}
	}
	if t.cause == "" {
		t.cause = "assign"
	}
	if len(faults) > 0 {
		return terms{}, fmt.Errorf("%w: %w", ErrInvalidAssignment, errors.Join(faults...))
	}
	return t, nil
}

// startedBy refuses a start in the future: a period that has not begun cannot be
// the running one.
func (t terms) startedBy(now time.Time) error {
	if t.start.After(now) {
		return fmt.Errorf("%w: start %s: must not be later than now, %s",
			ErrInvalidAssignment, t.start.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	return nil
}

// state is what the assignment says of the subscription, whose open period may be
// nil.
//
//	no open period          the period that contains now, or a trial
//	with NewPeriod          one that begins now, or a trial
//	the open one is a trial that runs   the same start; a new length moves its end
//	the open one is over    the current one
//	the open one runs       the same start; a new interval or anchor moves its end
func (t terms) state(a Assignment, open *Subscription, now time.Time) (SourceState, error) {
	switch {
	case open == nil:
		return t.first(a, now)
	case a.NewPeriod:
		return t.restarted(stateOf(*open), a, now)
	case t.ofTrial() && open.Status != StatusTrialing:
		return SourceState{}, fmt.Errorf("%w: trial: workspace %s has an open %s subscription that is on none; to begin one, open a new period",
			ErrInvalidAssignment, a.WorkspaceID, open.Source)
	case open.Status == StatusTrialing && (now.Before(open.Billing.End) || !t.trial.IsZero()):
		return t.onTrial(stateOf(*open), a, now)
	case !now.Before(open.Billing.End):
		return t.renewed(stateOf(*open), a, now)
	default:
		return t.amended(stateOf(*open), a, now)
	}
}

// first is the state of a workspace's new subscription. Its start is cut to the
// second, so that a clock a little behind finds it begun.
func (t terms) first(a Assignment, now time.Time) (SourceState, error) {
	state := SourceState{
		WorkspaceID: a.WorkspaceID, Key: t.key(a.WorkspaceID),
		Status: StatusActive, PaymentState: PaymentNone, PlanKey: a.PlanKey, Quantity: 1,
		Interval: Monthly, Anchor: now.Truncate(time.Second),
	}
	state.setSchedule(t, state.Anchor)
	if t.ofTrial() {
		return state, state.try(t, state.Anchor, now)
	}
	state.Period = state.Interval.Period(state.Anchor, now)
	return state, nil
}

// key names the subscription that is given to a workspace by hand: one a source.
func (t terms) key(workspace string) SubscriptionKey {
	return SubscriptionKey{Source: t.source, Livemode: true, SourceID: workspace}
}

// amended moves the end where the interval or the anchor is a new one.
func (t terms) amended(state SourceState, a Assignment, now time.Time) (SourceState, error) {
	open := state
	state.PlanKey = a.PlanKey
	state.setSchedule(t, open.Period.Start)
	if state.Interval == open.Interval && state.Anchor.Equal(open.Anchor) {
		return state, nil
	}
	period, err := state.periodAt(later(now, open.Period.Start))
	state.Period.End = period.End
	return state, err
}

// restarted is a period that begins now, whose end the anchor gives: the
// assignment's start, or else the new period's own.
func (t terms) restarted(state SourceState, a Assignment, now time.Time) (SourceState, error) {
	start := now.Truncate(time.Second)
	if !start.After(state.Period.Start) {
		start = state.Period.Start.Add(time.Millisecond)
	}
	state.PlanKey, state.Anchor, state.Kind = a.PlanKey, start, KindCycle
	state.Status, state.AfterTrial = StatusActive, ""
	state.setSchedule(t, start)
	if t.ofTrial() {
		return state, state.try(t, start, now)
	}
	period, err := state.periodAt(start)
	state.Period = Period{Start: start, End: period.End}
	return state, err
}

// renewed is the current period of a subscription whose last one is over.
func (t terms) renewed(state SourceState, a Assignment, now time.Time) (SourceState, error) {
	if state.Status == StatusTrialing {
		state.convert()
	}
	state.PlanKey = a.PlanKey
	state.setSchedule(t, state.Period.End)
	if state.Interval.IsZero() {
		return state, errNoInterval()
	}
	state.renew(now)
	return state, nil
}

// setSchedule takes over the interval and the anchor that the assignment names.
// A subscription that had neither and is given an interval counts it from the
// instant.
func (s *SourceState) setSchedule(t terms, from time.Time) {
	if !t.interval.IsZero() {
		s.Interval = t.interval
	}
	if !t.start.IsZero() {
		s.Anchor = t.start
	}
	if s.Anchor.IsZero() && !s.Interval.IsZero() {
		s.Anchor = from
	}
}

// periodAt is the period of the schedule that contains at, or an
// ErrInvalidAssignment without an interval.
func (s SourceState) periodAt(at time.Time) (Period, error) {
	if s.Interval.IsZero() {
		return Period{}, errNoInterval()
	}
	return s.Interval.Period(s.Anchor, at), nil
}

func errNoInterval() error {
	return fmt.Errorf("%w: interval: is missing; the open period does not renew, so name one, such as month", ErrInvalidAssignment)
}
