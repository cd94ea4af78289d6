package enforcement

import (
	"context"
	"time"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// Plans answers which terms a workspace is on. subscriptions.Cache is one.
type Plans interface {
	// Lookup is the terms at the given instant.
	Lookup(ctx context.Context, workspace string, at time.Time) (subscriptions.PlanInfo, error)
	// Invalidate makes whatever is known below the revision unusable; revision
	// 0 drops what is known, whatever it is.
	Invalidate(workspace string, revision int64)
}

// UsageSource answers what the database knows of a workspace's usage, for a
// Redis that knows nothing.
type UsageSource interface {
	Usage(ctx context.Context, workspace, usageEpoch string) (Usage, error)
}

// Usage is how much of a period is used.
type Usage struct {
	// Used counts the executions charged to the period.
	Used int64
	// Peak is the most that ran at one moment of the period.
	Peak int64
	// Leases are the executions that run, in any period.
	Leases []Lease
	// Over are executions that hold no slot and may still be asked about.
	Over []Over
}

// Watermark tells how far the UsageSource has come.
type Watermark interface {
	// Settled waits until the usage source knows of every decision and completion of a
	// workspace that was published before the call. On an error nothing is known.
	Settled(ctx context.Context, workspace string) (Settled, error)
}

// Settled says what was ever decided.
type Settled struct {
	// Workspace: there are decisions about the workspace.
	Workspace bool
	// Anybody: there are decisions about some workspace, or have been.
	Anybody bool
}

// Lease holds one slot of the concurrency limit until it expires.
type Lease struct {
	ExecutionID string
	ExpiresAt   time.Time
	// UsageEpoch names the period that was charged for the execution.
	UsageEpoch string
	// AdmittedAt is when it was admitted, zero if unknown.
	AdmittedAt time.Time
}

// Over is an execution that holds no slot.
type Over struct {
	ExecutionID string
	// Outcome is how it ended, empty where its lease did without a completion.
	Outcome schemas.Outcome
	// UsageEpoch names the period that was charged for it.
	UsageEpoch string
	// AdmittedAt is when it was admitted, zero where it ended unheard of.
	AdmittedAt time.Time
}

// Request asks for one execution to be admitted.
type Request struct {
	WorkspaceID string
	ExecutionID string
	// EventID and EventSource identify the request: the same pair is answered
	// the same, however often it is asked.
	EventID     string
	EventSource string
	// PayloadBytes is the size of the request's payload, 0 if unknown.
	PayloadBytes int64
	// Deadline is when the answer becomes worthless; zero is never. A request
	// that Redis's clock finds past it, and that was not answered before, is a 9008.
	Deadline time.Time
}

// Result is the answer to one Request: a decision, or an error and none.
type Result struct {
	Decision schemas.DecisionMade
	// LeaseExpiresAt is when the slot of an allowed execution frees itself. Zero
	// on a denial and on an execution that completed before it was asked for.
	LeaseExpiresAt time.Time
	// Err is nil, or wraps ErrUnavailable or ErrStale (ask again later), or a
	// subscriptions error (see Plans).
	Err error
}

// Completion says that an execution is over.
type Completion struct {
	WorkspaceID string
	ExecutionID string
	Outcome     schemas.Outcome
}

// Release is what a Completion did.
type Release struct {
	// Released: a live slot became free.
	Released bool
	// Refunded: the quota unit went back to the period that was charged.
	Refunded bool
	// Known is false when the completion arrived before its request; a
	// tombstone then keeps the request, when it comes, from taking a slot.
	Known bool
	// Prior is the outcome that was applied earlier; empty for the first
	// completion of an execution. The first applied wins.
	Prior schemas.Outcome
	Err   error
}

// Progress says how far a running execution has come.
type Progress struct {
	WorkspaceID string
	ExecutionID string
	EventID     string
	EventSource string
	// Tasks and PayloadBytes are nil when the event did not tell.
	Tasks        *int64
	PayloadBytes *int64
	// StartedAt and At are the execution's start and the progress on the
	// sender's clock; zero when unknown.
	StartedAt time.Time
	At        time.Time
}

// Extension is what a Progress did.
type Extension struct {
	// Live is false for an execution without a live slot: nothing was extended.
	Live           bool
	LeaseExpiresAt time.Time
	// Decision is a runtime denial to publish, nil while the execution is within
	// the limits that it was admitted with.
	Decision *schemas.DecisionMade
	Err      error
}
