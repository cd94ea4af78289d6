package main

import (
	"fmt"
	"time"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// subscriptionRow is a period row in the contract's shape.
type subscriptionRow struct {
	ID             string     `json:"id"`
	WorkspaceID    string     `json:"workspace_id"`
	Source         string     `json:"source"`
	SourceID       string     `json:"source_id"`
	Account        string     `json:"account"`
	Livemode       bool       `json:"livemode"`
	Status         string     `json:"status"`
	PaymentState   string     `json:"payment_state"`
	Kind           string     `json:"kind"`
	Quantity       int32      `json:"quantity"`
	PlanKey        string     `json:"plan_key"`
	PlanRevision   int64      `json:"plan_revision"`
	PeriodStart    time.Time  `json:"period_start"`
	PeriodEnd      time.Time  `json:"period_end"`
	UsageEpoch     string     `json:"usage_epoch"`
	Interval       string     `json:"interval,omitempty"`
	CancelAt       *time.Time `json:"cancel_at"`
	PlanUnresolved bool       `json:"plan_unresolved"`
	ClosedAt       *time.Time `json:"closed_at"`
	PreviousID     *string    `json:"previous_id"`
}

// rowOf is nil for no subscription.
func rowOf(s *subscriptions.Subscription) *subscriptionRow {
	if s == nil {
		return nil
	}
	return &subscriptionRow{
		ID: s.ID, WorkspaceID: s.WorkspaceID, Source: string(s.Source), SourceID: s.SourceID, Account: s.Account, Livemode: s.Livemode,
		Status: s.Status, PaymentState: s.PaymentState, Kind: s.Kind, Quantity: s.Quantity,
		PlanKey: s.PlanKey, PlanRevision: s.PlanRevision, PeriodStart: s.PeriodStart, PeriodEnd: s.PeriodEnd,
		UsageEpoch: s.UsageEpoch, Interval: s.Interval.String(), CancelAt: s.CancelAt, ClosedAt: s.ClosedAt, PreviousID: s.PreviousID,
	}
}

func (r *subscriptionRow) pairs() [][2]string {
	return [][2]string{
		{"workspace", r.WorkspaceID},
		{"plan", fmt.Sprintf("%s (revision %d)", r.PlanKey, r.PlanRevision)},
		{"subscription", r.ID},
		{"source", r.Source},
		{"status", r.Status},
		{"period", instant(r.PeriodStart) + " to " + instant(r.PeriodEnd) + " (" + r.Kind + ")"},
		{"interval", dash(r.Interval)},
		{"usage epoch", r.UsageEpoch},
	}
}

// Where a limit's value is from.
const (
	fromPlan    = "plan"
	fromDefault = "default"
)

// limitView is a limit with where it is from.
type limitView struct {
	Value     *int64 `json:"value"`
	Unlimited bool   `json:"unlimited"`
	From      string `json:"from"`
}

// usageView is what a workspace uses. Exact is false when Redis could not be asked.
type usageView struct {
	Executions int64     `json:"executions"`
	Concurrent int64     `json:"concurrent"`
	Peak       int64     `json:"peak"`
	Exact      bool      `json:"exact"`
	AsOf       time.Time `json:"as_of"`
}

// featureView is what a plan includes of a feature.
type featureView struct {
	Limit     *int64 `json:"limit"`
	Unlimited bool   `json:"unlimited"`
	Included  bool   `json:"included"`
}

// overLimit is a limit that less is allowed of than is in use.
type overLimit struct {
	Limit string `json:"limit"`
	Used  int64  `json:"used"`
	Value int64  `json:"value"`
}

// workspaceView is a workspace in the contract's shape.
type workspaceView struct {
	WorkspaceID  string                 `json:"workspace_id"`
	Revision     int64                  `json:"revision"`
	PlanKey      string                 `json:"plan_key"`
	PlanRevision int64                  `json:"plan_revision"`
	PeriodStart  time.Time              `json:"period_start"`
	PeriodEnd    time.Time              `json:"period_end"`
	Subscription *subscriptionRow       `json:"subscription"`
	Limits       map[string]limitView   `json:"limits"`
	Usage        usageView              `json:"usage"`
	Ledger       usageView              `json:"ledger"`
	Features     map[string]featureView `json:"features"`
	OverLimit    []overLimit            `json:"over_limit"`
}

// viewOf shows a plan reading and the row it came from, which is nil on the
// default plan.
func viewOf(plan subscriptions.PlanInfo, row *subscriptionRow) workspaceView {
	from := fromPlan
	if plan.SubscriptionID == "" {
		from = fromDefault
	}
	view := workspaceView{
		WorkspaceID: plan.WorkspaceID, Revision: plan.Revision,
		PlanKey: plan.Snapshot.PlanKey, PlanRevision: plan.Snapshot.PlanRevision,
		PeriodStart: plan.Period.Start, PeriodEnd: plan.Period.End, Subscription: row,
		Limits: map[string]limitView{}, Features: map[string]featureView{}, OverLimit: []overLimit{},
	}
	for _, name := range schemas.LimitNames {
		limit := plan.Snapshot.Limits.Named(name)
		view.Limits[name] = limitView{Value: limit.Pointer(), Unlimited: limit.IsUnlimited(), From: from}
	}
	for name, limit := range plan.Snapshot.Features {
		view.Features[name] = featureView{Limit: limit.Pointer(), Unlimited: limit.IsUnlimited(), Included: true}
	}
	return view
}

// measure fills in the usage and what of it is over a limit.
func (v *workspaceView) measure(usage, ledger usageView) {
	v.Usage, v.Ledger = usage, ledger
	for _, m := range []struct {
		name string
		used int64
	}{
		{schemas.LimitExecutions, usage.Executions},
		{schemas.LimitConcurrentExecutions, usage.Concurrent},
	} {
		limit := v.Limits[m.name]
		if limit.Value != nil && m.used > *limit.Value {
			v.OverLimit = append(v.OverLimit, overLimit{Limit: m.name, Used: m.used, Value: *limit.Value})
		}
	}
}
