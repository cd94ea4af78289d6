package subscriptions

import (
	"fmt"
	"time"
)

// ofTrial reports whether the assignment says anything of a trial.
func (t terms) ofTrial() bool { return !t.trial.IsZero() || t.afterTrial != "" }

// try makes the state a trial that begins at start. The periods after it are counted
// from its end.
func (s *SourceState) try(t terms, start, now time.Time) error {
	if t.trial.IsZero() {
		return fmt.Errorf("%w: after trial: there is no trial before it; say how long one is, such as 14d", ErrInvalidAssignment)
	}
	s.Period = t.trial.Period(start, start)
	if !now.Before(s.Period.End) {
		return fmt.Errorf("%w: trial: %s from %s was over at %s", ErrInvalidAssignment,
			t.trial, start.Format(time.RFC3339), s.Period.End.Format(time.RFC3339))
	}
	s.Status, s.Anchor, s.AfterTrial = StatusTrialing, s.Period.End, AfterTrialConvert
	if t.afterTrial != "" {
		s.AfterTrial = t.afterTrial
	}
	return nil
}

// onTrial changes a trial: its plan, how long it is in all, what comes after it.
func (t terms) onTrial(state SourceState, a Assignment, now time.Time) (SourceState, error) {
	if !t.start.IsZero() {
		return state, fmt.Errorf("%w: start: the open trial keeps its start, %s; to begin elsewhere, open a new period",
			ErrInvalidAssignment, state.Period.Start.Format(time.RFC3339))
	}
	state.PlanKey = a.PlanKey
	if !t.interval.IsZero() {
		state.Interval = t.interval
	}
	if t.afterTrial == "" {
		t.afterTrial = state.AfterTrial
	}
	if t.trial.IsZero() {
		state.AfterTrial = t.afterTrial
		return state, nil
	}
	return state, state.try(t, state.Period.Start, now)
}
