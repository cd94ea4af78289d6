package subscriptions

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// SubscriptionKey names a subscription at its source, over all its periods.
type SubscriptionKey struct {
	Source   Source
	Account  string
	Livemode bool
	SourceID string
}

// SourceState is what a subscription's source says about it at one moment: the
// whole of it, not a change.
type SourceState struct {
	WorkspaceID  string
	Key          SubscriptionKey
	Status       string
	PaymentState string
	PlanKey      string
	Quantity     int32
	// Period is the billing period that the source says is running.
	Period Period
	// Interval and Anchor are set where this package renews the subscription.
	Interval Interval
	Anchor   time.Time
	// AfterTrial is what becomes of a trial that this package ends; see
	// Subscription.AfterTrial.
	AfterTrial string
	// CancelAt is when it is set to end; EndedAt is when it did.
	CancelAt *time.Time
	EndedAt  *time.Time
	// Kind is how the period came about, if the source says so; empty leaves it to
	// be found out from the periods.
	Kind string
	SourceFacts
}

// SourceFacts are what a source says of a subscription besides its period.
type SourceFacts struct {
	// SourceCreated is when the source made the subscription, zero if it does not say.
	SourceCreated time.Time
	// TestClock says that it lives by a clock of a test: no rule about the present
	// holds for it, neither a grace nor that news are overdue.
	TestClock bool
	// PlanUnresolved says that no plan is known for what it is subscribed to. The plan
	// that it was on stays.
	PlanUnresolved bool
	// Disputed says that a dispute has withdrawn the money of the period. What that
	// means is Policy.HoldDisputed.
	Disputed bool
}

// stateOf is a row as its source's word, to change what is new about it.
func stateOf(s Subscription) SourceState {
	return SourceState{
		WorkspaceID: s.WorkspaceID, Key: s.Key(), Status: s.Status, PaymentState: s.PaymentState,
		PlanKey: s.PlanKey, Quantity: s.Quantity, Period: s.Billing,
		Interval: s.Interval, Anchor: s.Anchor, CancelAt: s.CancelAt, AfterTrial: s.AfterTrial,
		SourceFacts: s.SourceFacts,
	}
}

// inUTC is the state in the zone and the precision in which it is stored, so that
// an instant is compared with what became of it.
func (s SourceState) inUTC() SourceState {
	s.Period = Period{Start: stored(s.Period.Start), End: stored(s.Period.End)}
	s.Anchor, s.SourceCreated = stored(s.Anchor), stored(s.SourceCreated)
	s.CancelAt, s.EndedAt = storedOrNil(s.CancelAt), storedOrNil(s.EndedAt)
	return s
}

func stored(at time.Time) time.Time { return at.UTC().Truncate(time.Microsecond) }

func storedOrNil(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	instant := stored(*at)
	return &instant
}

// check reports every fault of the state that is no matter of what is known.
func (s SourceState) check() error {
	var faults []error
	if !schemas.ValidID(s.WorkspaceID) {
		faults = append(faults, fmt.Errorf("workspace %q: %s", s.WorkspaceID, idRule))
	}
	if s.Key.SourceID == "" {
		faults = append(faults, errors.New("source id: is missing"))
	}
	if !s.Period.Start.Before(s.Period.End) {
		faults = append(faults, fmt.Errorf("period: ends %s, which is not after its start %s",
			s.Period.End.Format(time.RFC3339), s.Period.Start.Format(time.RFC3339)))
	}
	payments := []string{PaymentNone, PaymentPending, PaymentPaid, PaymentFailed}
	if !slices.Contains(payments, s.PaymentState) {
		faults = append(faults, fmt.Errorf("payment state %q: must be none, pending, paid or failed", s.PaymentState))
	}
	if s.Kind == KindEnded || s.Kind != "" && !slices.Contains(schemas.RenewalKinds, s.Kind) {
		faults = append(faults, fmt.Errorf("kind %q: is not one of a period", s.Kind))
	}
	if s.AfterTrial != "" && !slices.Contains(AfterTrials(), s.AfterTrial) {
		faults = append(faults, fmt.Errorf("after trial %q: must be convert, expire or default", s.AfterTrial))
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w: %w", ErrInvalidState, errors.Join(faults...))
	}
	return nil
}
