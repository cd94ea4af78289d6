package schemas

import "time"

// The types of the events, version included. A consumer that meets another
// type or version refuses the message instead of guessing.
const (
	TypeExecutionRequested    = "headroom.execution.requested.v1"
	TypeExecutionProgressed   = "headroom.execution.progressed.v1"
	TypeExecutionCompleted    = "headroom.execution.completed.v1"
	TypeSubscriptionRenewed   = "headroom.subscription.renewed.v1"
	TypeDecisionMade          = "headroom.decision.made.v1"
	TypePlanInvalidated       = "headroom.plan.invalidated.v1"
	TypeUsageThresholdReached = "headroom.usage.threshold_reached.v1"
)

// Event is a CloudEvents 1.0 event in structured JSON. ID and Source together
// identify it: the same pair is the same event, however often it arrives.
type Event[T any] struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject,omitempty"`
	Time            time.Time `json:"time,omitzero"`
	DataContentType string    `json:"datacontenttype,omitempty"`
	Data            T         `json:"data"`
}

// ExecutionRequested asks whether an execution may start.
type ExecutionRequested struct {
	WorkspaceID string `json:"workspace_id"`
	ExecutionID string `json:"execution_id"`
	// PayloadBytes is the size of the request's payload, if it is known.
	PayloadBytes *int64 `json:"payload_bytes,omitempty"`
	// Deadline is when the answer becomes worthless: later is a 9008.
	Deadline *time.Time `json:"deadline,omitempty"`
}

// ExecutionProgressed tells how far a running execution has come. It extends
// the execution's lease.
type ExecutionProgressed struct {
	WorkspaceID string `json:"workspace_id"`
	ExecutionID string `json:"execution_id"`
	// Tasks is how many tasks the execution has had so far.
	Tasks *int64 `json:"tasks,omitempty"`
	// PayloadBytes is the largest payload of the execution so far.
	PayloadBytes *int64 `json:"payload_bytes,omitempty"`
	// StartedAt is when the execution began on the engine's clock.
	StartedAt *time.Time `json:"started_at,omitempty"`
}

// Outcome is how an execution ended.
type Outcome string

// The outcomes. NotStarted gives the quota unit back.
const (
	OutcomeSucceeded  Outcome = "succeeded"
	OutcomeFailed     Outcome = "failed"
	OutcomeCanceled   Outcome = "canceled"
	OutcomeNotStarted Outcome = "not_started"
)

var outcomes = []Outcome{OutcomeSucceeded, OutcomeFailed, OutcomeCanceled, OutcomeNotStarted}

// ExecutionCompleted says that an execution is over and its slot free.
type ExecutionCompleted struct {
	WorkspaceID string  `json:"workspace_id"`
	ExecutionID string  `json:"execution_id"`
	Outcome     Outcome `json:"outcome"`
	Tasks       *int64  `json:"tasks,omitempty"`
}

// SubscriptionRenewed says that a workspace has a new billing period.
type SubscriptionRenewed struct {
	WorkspaceID            string    `json:"workspace_id"`
	SubscriptionID         string    `json:"subscription_id"`
	PreviousSubscriptionID *string   `json:"previous_subscription_id,omitempty"`
	Kind                   string    `json:"kind"`
	PlanKey                string    `json:"plan_key"`
	PlanRevision           int64     `json:"plan_revision"`
	PeriodStart            time.Time `json:"period_start"`
	PeriodEnd              time.Time `json:"period_end"`
}

// RenewalKinds lists what SubscriptionRenewed.Kind may be.
var RenewalKinds = []string{
	"created", "cycle", "trial_end", "anchor_reset", "resume", "plan_change", "ended",
}

// DecisionKind tells a decision before the start from one during the run.
type DecisionKind string

// The kinds of decisions.
const (
	KindAdmission DecisionKind = "admission"
	KindRuntime   DecisionKind = "runtime"
)

// DecisionMade is Headroom's answer, with all it was measured against.
type DecisionMade struct {
	// DecisionID is derived from workspace, execution, request event and kind,
	// so that a replay carries the same one.
	DecisionID         string       `json:"decision_id"`
	Kind               DecisionKind `json:"kind"`
	WorkspaceID        string       `json:"workspace_id"`
	ExecutionID        string       `json:"execution_id"`
	RequestEventID     string       `json:"request_event_id"`
	RequestEventSource string       `json:"request_event_source"`

	Allowed bool `json:"allowed"`
	// Code is 0 for allowed, else 9001 to 9008; Error is its name.
	Code    int    `json:"code"`
	Error   string `json:"error"`
	Message string `json:"message"`

	// Limit names the deciding limit; LimitValue, Used and Remaining are of it,
	// or of the execution quota when allowed. A nil LimitValue or Remaining has no bound.
	Limit      string   `json:"limit"`
	LimitValue *int64   `json:"limit_value"`
	Used       int64    `json:"used"`
	Remaining  *int64   `json:"remaining"`
	Exhausted  []string `json:"exhausted"`

	Concurrent      int64  `json:"concurrent"`
	ConcurrentLimit *int64 `json:"concurrent_limit"`
	Peak            int64  `json:"peak"`

	ResetsAt     *time.Time `json:"resets_at,omitempty"`
	RetryAfterMS *int64     `json:"retry_after_ms,omitempty"`
	// LeaseExpiresAt is when the slot of an allowed execution frees itself,
	// unless a progress event extends it or a completion frees it earlier.
	LeaseExpiresAt *time.Time `json:"lease_expires_at,omitempty"`
	// Replayed is true when the answer was given before and is repeated.
	Replayed bool `json:"replayed"`
	// Shadow marks a decision that denies nothing (HEADROOM_SHADOW).
	Shadow bool `json:"shadow,omitempty"`

	// The plan, its period and PlanAsOf are empty only on a 9008 for which no
	// plan could be read.
	PlanKey        string    `json:"plan_key"`
	PlanRevision   int64     `json:"plan_revision"`
	SubscriptionID *string   `json:"subscription_id"`
	PeriodStart    time.Time `json:"period_start,omitzero"`
	PeriodEnd      time.Time `json:"period_end,omitzero"`
	Limits         Limits    `json:"limits"`

	// Exact is false when the plan was read longer ago than the cache allows.
	Exact     bool      `json:"exact"`
	PlanAsOf  time.Time `json:"plan_as_of,omitzero"`
	DecidedAt time.Time `json:"decided_at"`
}

// PlanInvalidated says that what was cached about a workspace's plan is old.
type PlanInvalidated struct {
	WorkspaceID  string `json:"workspace_id"`
	PlanRevision int64  `json:"plan_revision"`
	Reason       string `json:"reason"`
}

// UsageThresholdReached is sent once per threshold, period and limit value.
type UsageThresholdReached struct {
	WorkspaceID string       `json:"workspace_id"`
	Limit       string       `json:"limit"`
	Percent     int          `json:"percent"`
	Used        int64        `json:"used"`
	LimitValue  int64        `json:"limit_value"`
	Period      EventsPeriod `json:"period"`
}

// EventsPeriod is a half-open period [Start, End) in UTC.
type EventsPeriod struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}
