package api

import (
	"time"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// Where the value of a limit or feature is from.
const (
	// FromPlan is the plan of the workspace's subscription, FromOverride an override of
	// the workspace's own, FromDefault the default plan.
	FromPlan     = "plan"
	FromOverride = "override"
	FromDefault  = "default"
)

// WorkspaceView is a workspace: what it is on, what that allows, and what it uses.
type WorkspaceView struct {
	WorkspaceID string `json:"workspace_id"`
	// Revision rises with whatever is written for the workspace; 0 is one never seen.
	Revision     int64     `json:"revision"`
	PlanKey      string    `json:"plan_key"`
	PlanRevision int64     `json:"plan_revision"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	// QuotaInterval is how long a quota lasts inside a longer period, empty for all of it.
	QuotaInterval string `json:"quota_interval,omitempty"`
	// Subscription is the row that counts, nil on the default plan.
	Subscription *SubscriptionRow `json:"subscription"`
	// Limits are all seven, by name.
	Limits map[string]LimitView `json:"limits"`
	Usage  UsageView            `json:"usage"`
	// Ledger is what PostgreSQL has recorded, which follows within about a second.
	Ledger LedgerView `json:"ledger"`
	// Features are all that the catalog names, also those that the plan lacks.
	Features map[string]FeatureView `json:"features"`
	// OverLimit is what less is allowed of than is in use.
	OverLimit []OverLimitView `json:"over_limit" nullable:"false"`
	// Pinned is the subscription that is chosen whatever its plan's rank, nil for none.
	Pinned    *PinnedView    `json:"pinned"`
	Overrides []OverrideView `json:"overrides" nullable:"false"`
	// Changes are the amendments of the running period, oldest first.
	Changes []ChangeView `json:"changes" nullable:"false"`
	// Subscriptions are the newest periods, newest first.
	Subscriptions []SubscriptionView `json:"subscriptions" nullable:"false"`
}

// LimitView is a limit with where it is from.
type LimitView struct {
	// Value is nil where there is no bound.
	Value     *int64 `json:"value"`
	Unlimited bool   `json:"unlimited"`
	// From is FromPlan, FromOverride or FromDefault.
	From string `json:"from"`
}

// UsageView is what a workspace uses.
type UsageView struct {
	// Executions were started in the period; Concurrent run, and Peak ran at most at once.
	Executions int64 `json:"executions"`
	Concurrent int64 `json:"concurrent"`
	Peak       int64 `json:"peak"`
	// StorageMB is what is stored, in megabytes of 1,048,576 bytes.
	StorageMB float64 `json:"storage_mb"`
	// Exact is false where the executions are the ledger's, because Redis could not be
	// asked or lost the period.
	Exact bool      `json:"exact"`
	AsOf  time.Time `json:"as_of"`
	// Cause is why it is not exact: ErrPeriodLost, or what Redis failed with.
	Cause error `json:"-"`
}

// LedgerView is what the ledger has of the executions.
type LedgerView struct {
	Executions int64     `json:"executions"`
	Concurrent int64     `json:"concurrent"`
	Peak       int64     `json:"peak"`
	Exact      bool      `json:"exact"`
	AsOf       time.Time `json:"as_of"`
}

// FeatureView is what a workspace has of a feature, and may have.
type FeatureView struct {
	// Kind is stock, flow or boolean.
	Kind string `json:"kind"`
	Used int64  `json:"used"`
	// Limit is nil where there is no bound, and 0 for a feature that is not included.
	Limit     *int64 `json:"limit"`
	Unlimited bool   `json:"unlimited"`
	// Remaining is nil where there is no bound.
	Remaining *int64 `json:"remaining"`
	// Locked is how many of its resources are beyond the limit.
	Locked   int64 `json:"locked"`
	Included bool  `json:"included"`
	// From is FromPlan, FromOverride or FromDefault.
	From string `json:"from"`
	// ResetsAt is when a flow begins anew, nil for the others.
	ResetsAt *time.Time `json:"resets_at,omitempty"`
}

// OverLimitView is a limit that less is allowed of than is in use: a limit's name, or
// "features." and a feature's name.
type OverLimitView struct {
	Limit string `json:"limit"`
	// Used is in the unit of the limit; storage counts a part of a megabyte as a whole one.
	Used  int64 `json:"used"`
	Value int64 `json:"value"`
}

// PinnedView is the subscription that counts whenever it is live.
type PinnedView struct {
	Source   string `json:"source"`
	SourceID string `json:"source_id"`
	Account  string `json:"account"`
	Livemode bool   `json:"livemode"`
}

func pinnedOf(key *subscriptions.SubscriptionKey) *PinnedView {
	if key == nil {
		return nil
	}
	return &PinnedView{Source: string(key.Source), SourceID: key.SourceID, Account: key.Account, Livemode: key.Livemode}
}

// OverrideView is a limit or feature of a workspace's own.
type OverrideView struct {
	// Field is a limit's name, or "features." and a feature's name.
	Field string `json:"field"`
	// Kind is the feature's, absent for a limit.
	Kind string `json:"kind,omitempty"`
	// Value is nil without a bound; of a boolean feature 0 is off and unlimited on.
	Value     *int64     `json:"value"`
	Unlimited bool       `json:"unlimited"`
	Reason    string     `json:"reason"`
	ExpiresAt *time.Time `json:"expires_at"`
	SetAt     time.Time  `json:"set_at"`
	SetBy     string     `json:"set_by"`
}

// ViewOverrides is how overrides are shown, in the order given.
func ViewOverrides(overrides []subscriptions.Override) []OverrideView {
	views := make([]OverrideView, len(overrides))
	for i, o := range overrides {
		views[i] = OverrideView{
			Field: o.Field, Kind: string(o.Kind), Value: o.Value.Pointer(), Unlimited: o.Value.IsUnlimited(),
			Reason: o.Reason, ExpiresAt: o.ExpiresAt, SetAt: o.SetAt, SetBy: o.SetBy,
		}
	}
	return views
}

// ExecutionView is an execution that runs.
type ExecutionView struct {
	ExecutionID string `json:"execution_id"`
	// SubscriptionID is the period that was charged, nil on the default plan.
	SubscriptionID *string `json:"subscription_id"`
	// StartedAt is when it was admitted, nil where that is not known any more.
	StartedAt      *time.Time `json:"started_at"`
	LeaseExpiresAt time.Time  `json:"lease_expires_at"`
	// Tasks and PayloadBytes are the most that its progress has told, nil for nothing.
	Tasks        *int64 `json:"tasks"`
	PayloadBytes *int64 `json:"payload_bytes"`
}

// DecisionView is a decision as it was published. What is not known of it any more is
// left out: of an allowed one that is exact, replayed and plan_as_of.
type DecisionView struct {
	schemas.DecisionMade

	Exact    *bool `json:"exact,omitempty"`
	Replayed *bool `json:"replayed,omitempty"`
}

// ViewDecision completes what the ledger shortens, an allowed decision, with what
// follows from the rest. Every decision that was published has a message.
func ViewDecision(d schemas.DecisionMade) DecisionView {
	if d.Message != "" {
		return DecisionView{DecisionMade: d, Exact: &d.Exact, Replayed: &d.Replayed}
	}
	d.Message = "Allowed."
	if !d.PeriodEnd.IsZero() {
		d.ResetsAt = &d.PeriodEnd
	}
	return DecisionView{DecisionMade: d}
}
