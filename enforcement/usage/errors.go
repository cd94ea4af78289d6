package usage

import (
	"errors"
	"fmt"
	"time"
)

// ErrUnavailable means that the plan could not be read, or stayed older than what
// the database holds, so nothing was decided and nothing counted: ask again.
var ErrUnavailable = errors.New("usage cannot be decided at the moment")

// InvalidArgument means that the caller's own request is wrong: nothing was looked at.
type InvalidArgument struct {
	// Field is the argument's name as HTTP spells it, and Detail what is wrong with it.
	Field, Detail string
}

// Error names the field and what was wrong.
func (e *InvalidArgument) Error() string { return e.Field + " " + e.Detail }

// QuotaExceeded means that the plan includes the feature and less than was asked
// for is left of it.
type QuotaExceeded struct {
	WorkspaceID, Feature, PlanKey string
	// Used and Limit are in the feature's own unit, bytes for schemas.FeatureStorage.
	Used, Limit, Requested int64
	// ResetsAt is when a flow begins anew; nil for a stock.
	ResetsAt *time.Time
}

// Error says how much there is and how much was asked for.
func (e *QuotaExceeded) Error() string {
	return fmt.Sprintf("%d of %s asked for; %d of the %d that plan %s allows are used", e.Requested, e.Feature, e.Used, e.Limit, e.PlanKey)
}

// Remaining is how much is left, 0 when more is used than allowed.
func (e *QuotaExceeded) Remaining() int64 { return max(e.Limit-e.Used, 0) }

// PolicyViolation means that no quantity is allowed, whatever is used: the plan does
// not include the feature, or the feature is not one that is counted.
type PolicyViolation struct {
	WorkspaceID, Feature, PlanKey string
	// Unknown is set where no plan of the catalog has the feature: a wrong name.
	Unknown bool
	// Uncounted is set where the feature is switched on or off and not counted.
	Uncounted bool
}

// Error says why nothing is allowed.
func (e *PolicyViolation) Error() string {
	switch {
	case e.Unknown:
		return fmt.Sprintf("no plan of the catalog has feature %s", e.Feature)
	case e.Uncounted:
		return fmt.Sprintf("feature %s is on or off and can't be counted", e.Feature)
	default:
		return fmt.Sprintf("plan %s does not include feature %s", e.PlanKey, e.Feature)
	}
}

// ResourceLocked means that the resource is one of those beyond what the plan allows
// since a downgrade.
type ResourceLocked struct {
	WorkspaceID, Feature, ResourceID, PlanKey string
	// Used is how much there is, of which Limit stay unlocked.
	Used, Limit int64
}

// Error says what unlocks it.
func (e *ResourceLocked) Error() string {
	return fmt.Sprintf("%s of %s is locked: plan %s allows %d and there are %d; release others, keep this one instead of another, or upgrade",
		e.ResourceID, e.Feature, e.PlanKey, e.Limit, e.Used)
}

// KeyReused means that an idempotency key came again with another request.
type KeyReused struct{ Key string }

// Error asks for another key.
func (e *KeyReused) Error() string {
	return fmt.Sprintf("idempotency key %q was used for another request", e.Key)
}
