package subscriptions

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

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
	// Now is the moment of the assignment; zero is the database's clock.
	Now time.Time
	// Cause is written beside each amendment; empty is "assign".
	Cause string
}

// terms are an assignment's values after they were checked.
type terms struct {
	source   Source
	interval Interval
	start    time.Time
	cause    string
}

// check reports every fault of the assignment at once, each naming its field and
// what is allowed.
func (a Assignment) check() (terms, error) {
	t := terms{source: a.Source, cause: a.Cause}
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

// first is the row of a workspace's new subscription. Its start is cut to the
// second, so that a clock a little behind finds it begun.
func (t terms) first(workspace string, plan Snapshot, now time.Time) (Subscription, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Subscription{}, fmt.Errorf("make a subscription id: %w", err)
	}
	row := Subscription{
		ID: id.String(), UsageEpoch: id.String(),
		WorkspaceID: workspace, Source: t.source, SourceID: workspace, Livemode: true,
		Quantity: 1, Status: statusActive, PaymentState: "none", Kind: kindCreated,
		Interval: Monthly, Anchor: now.Truncate(time.Second),
	}
	row.setSchedule(t, row.Anchor)
	row.setTerms(plan)
	period := row.Interval.Period(row.Anchor, now)
	row.PeriodStart, row.PeriodEnd = period.Start, period.End
	return row, nil
}

// setSchedule takes over the interval and the anchor that the assignment names.
// A row that had neither and is given an interval counts it from the instant.
func (s *Subscription) setSchedule(t terms, from time.Time) {
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

// periodAt is the period of the row's schedule that contains at, or an
// ErrInvalidAssignment on a row that has no interval.
func (s Subscription) periodAt(at time.Time) (Period, error) {
	if s.Interval.IsZero() {
		return Period{}, fmt.Errorf("%w: interval: is missing; the open period does not renew, so name one, such as month", ErrInvalidAssignment)
	}
	return s.Interval.Period(s.Anchor, at), nil
}

// amended is the open row on new terms: same id, same start, same quota counter.
// A new interval or anchor moves the end.
func (t terms) amended(open Subscription, plan Snapshot, now time.Time) (Subscription, error) {
	row := open
	row.setSchedule(t, open.PeriodStart)
	row.setTerms(plan)
	if row.Interval == open.Interval && row.Anchor.Equal(open.Anchor) {
		return row, nil
	}
	period, err := row.periodAt(later(now, row.PeriodStart))
	row.PeriodEnd = period.End
	return row, err
}

// restarted is the row that follows an open one now, whose end the anchor gives:
// the assignment's start, or else the new period's own.
func (t terms) restarted(open Subscription, plan Snapshot, now time.Time) (Subscription, error) {
	start := now.Truncate(time.Second)
	if !start.After(open.PeriodStart) {
		start = open.PeriodStart.Add(time.Millisecond)
	}
	open.Anchor = start
	open.setSchedule(t, start)
	period, err := open.periodAt(start)
	if err != nil {
		return Subscription{}, err
	}
	return open.successor(Period{Start: start, End: period.End}, plan)
}

// renewed is the row that follows one whose period is over, on new terms.
func (t terms) renewed(over Subscription, plan Snapshot, now time.Time) (Subscription, error) {
	over.setSchedule(t, over.PeriodEnd)
	period, err := over.periodAt(now)
	if err != nil {
		return Subscription{}, err
	}
	period.Start = later(period.Start, over.PeriodEnd)
	return over.successor(period, plan)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
