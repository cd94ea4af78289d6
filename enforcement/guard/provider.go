package guard

import (
	"context"
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// Provider knows what an organization may do.
type Provider interface {
	// Resolve tells what holds now. It is asked twice for each guard: before the lock, so
	// that it can fetch what it needs, and while the lock and a database connection are
	// held, with a short deadline. It must heed ctx, and the second time should answer from
	// memory: what waits there for a connection of the guard's pool can wait for itself.
	//
	// The error is *UnknownPrivilege, *NotEntitled, or anything else, which means
	// that it is not known: then nothing is allowed.
	Resolve(ctx context.Context, organization, privilege string) (Resolution, error)
}

// Kind is what a privilege is.
type Kind string

// The kinds of privileges. Only KindLimit can be guarded.
const (
	KindBoolean Kind = "boolean"
	KindLimit   Kind = "limit"
	KindValue   Kind = "value"
)

// Source says where a limit is from.
type Source string

// The sources of a limit.
const (
	// SourceOverride is a value of the organization's own.
	SourceOverride Source = "override"
	// SourcePlan is the plan of the running period.
	SourcePlan Source = "plan"
	// SourceDefault is the plan of those who have no subscription.
	SourceDefault Source = "default"
	// SourceFallback is Options.Fallbacks, because the provider is away.
	SourceFallback Source = "fallback"
)

// Resolution is what an organization may do of one privilege, all from one reading.
type Resolution struct {
	// Kind must be KindLimit for a guard.
	Kind Kind
	// Limit is what the organization may have; the zero Limit allows nothing.
	Limit schemas.Limit
	// PerSubject and PerResource are caps within it, nil for none.
	PerSubject, PerResource *schemas.Limit
	Source                  Source
	// AsOf is when this was read from the database. Stale says that it is older than
	// it should be, because the database is away.
	AsOf  time.Time
	Stale bool
	// PeriodStart and PeriodEnd are the running period, UTC; zero where there is none.
	PeriodStart, PeriodEnd time.Time
	// ResetsAt is when usage begins at 0 again, nil where it never does by itself.
	ResetsAt *time.Time
	PlanKey  string
	// PlanRevision is the plan's, 0 where it has none.
	PlanRevision int64
	// SubscriptionID is empty without a subscription.
	SubscriptionID string
	// Metadata is the provider's own, for people to read.
	Metadata map[string]string
}

// Reason says why a guard came out as it did.
type Reason string

// The reasons.
const (
	ReasonWithin    Reason = "within_limit"
	ReasonUnlimited Reason = "unlimited"
	ReasonExceeded  Reason = "limit_exceeded"
)

// Details are all that a decision was made of, read once. After an error they hold what
// was known by then.
type Details struct {
	Request
	Resolution
	// Allowed says that the check passed. Act may have failed after that.
	Allowed bool
	// Reason is empty until the check was made.
	Reason Reason
	// Usage is what count returned.
	Usage Usage
	// Remaining is what the organization's limit leaves: after act, or as it is
	// where the check failed. It is nil where there is no limit.
	Remaining *int64
	// Domain is where the lock excludes others, empty without a lock.
	Domain string
}
