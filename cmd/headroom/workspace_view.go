package main

import (
	"fmt"
	"time"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// subscriptionRow is a period row in the contract's shape.
type subscriptionRow struct {
	ID           string    `json:"id"`
	WorkspaceID  string    `json:"workspace_id"`
	Source       string    `json:"source"`
	SourceID     string    `json:"source_id"`
	Account      string    `json:"account"`
	Livemode     bool      `json:"livemode"`
	Status       string    `json:"status"`
	PaymentState string    `json:"payment_state"`
	Kind         string    `json:"kind"`
	Quantity     int32     `json:"quantity"`
	PlanKey      string    `json:"plan_key"`
	PlanRevision int64     `json:"plan_revision"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	UsageEpoch   string    `json:"usage_epoch"`
	Interval     string    `json:"interval,omitempty"`
	// The billing period is longer than the row's own where the plan has a quota interval.
	BillingStart   time.Time  `json:"billing_start"`
	BillingEnd     time.Time  `json:"billing_end"`
	AfterTrial     string     `json:"after_trial,omitempty"`
	UnpaidSince    *time.Time `json:"unpaid_since,omitempty"`
	OverdueSince   *time.Time `json:"overdue_since,omitempty"`
	CancelAt       *time.Time `json:"cancel_at"`
	PlanUnresolved bool       `json:"plan_unresolved"`
	Disputed       bool       `json:"disputed,omitempty"`
	// On a test clock the period may be anywhere.
	TestClock  bool       `json:"test_clock,omitempty"`
	ClosedAt   *time.Time `json:"closed_at"`
	PreviousID *string    `json:"previous_id"`
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
		UsageEpoch: s.UsageEpoch, Interval: s.Interval.String(), BillingStart: s.Billing.Start, BillingEnd: s.Billing.End,
		AfterTrial: s.AfterTrial, UnpaidSince: s.UnpaidSince, OverdueSince: s.OverdueSince, CancelAt: s.CancelAt, ClosedAt: s.ClosedAt, PreviousID: s.PreviousID,
		PlanUnresolved: s.PlanUnresolved, Disputed: s.Disputed, TestClock: s.TestClock,
	}
}

func (r *subscriptionRow) pairs() [][2]string {
	pairs := [][2]string{
		{"workspace", r.WorkspaceID},
		{"plan", fmt.Sprintf("%s (revision %d)", r.PlanKey, r.PlanRevision)},
		{"subscription", r.ID},
		{"source", r.Source},
		{"status", r.Status},
		{"period", instant(r.PeriodStart) + " to " + instant(r.PeriodEnd) + " (" + r.Kind + ")"},
	}
	pairs = append(pairs, r.ahead()...)
	return append(pairs, [2]string{"interval", dash(r.Interval)}, [2]string{"usage epoch", r.UsageEpoch})
}

// ahead is what the status and the period do not tell of what follows, without
// what does not apply.
func (r *subscriptionRow) ahead() [][2]string {
	var pairs [][2]string
	if !r.BillingStart.Equal(r.PeriodStart) || !r.BillingEnd.Equal(r.PeriodEnd) {
		pairs = append(pairs, [2]string{"billing period", instant(r.BillingStart) + " to " + instant(r.BillingEnd)})
	}
	if r.Status == subscriptions.StatusTrialing && r.AfterTrial != "" {
		pairs = append(pairs, [2]string{"after trial", r.AfterTrial})
	}
	for _, at := range []struct {
		name string
		at   *time.Time
	}{{"ends at", r.CancelAt}, {"unpaid since", r.UnpaidSince}, {"overdue since", r.OverdueSince}} {
		if at.at != nil {
			pairs = append(pairs, [2]string{at.name, instant(*at.at)})
		}
	}
	if r.PlanUnresolved {
		pairs = append(pairs, [2]string{"unresolved", "none of its prices is in the catalog; the last plan stays"})
	}
	if r.Disputed {
		pairs = append(pairs, [2]string{"disputed", "its money is withdrawn"})
	}
	return pairs
}

// Where a limit's value is from.
const (
	fromPlan     = "plan"
	fromOverride = "override"
	fromDefault  = "default"
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
	From      string `json:"from"`
}

// pinnedView is the subscription that counts whenever it is live.
type pinnedView struct {
	Source   string `json:"source"`
	SourceID string `json:"source_id"`
	Account  string `json:"account"`
	Livemode bool   `json:"livemode"`
}

func pinnedOf(key *subscriptions.SubscriptionKey) *pinnedView {
	if key == nil {
		return nil
	}
	return &pinnedView{Source: string(key.Source), SourceID: key.SourceID, Account: key.Account, Livemode: key.Livemode}
}

// overLimit is a limit that less is allowed of than is in use.
type overLimit struct {
	Limit string `json:"limit"`
	Used  int64  `json:"used"`
	Value int64  `json:"value"`
}

// workspaceView is a workspace in the contract's shape.
type workspaceView struct {
	WorkspaceID  string    `json:"workspace_id"`
	Revision     int64     `json:"revision"`
	PlanKey      string    `json:"plan_key"`
	PlanRevision int64     `json:"plan_revision"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	// QuotaInterval is how long a quota lasts inside a longer period, empty for all of it.
	QuotaInterval string                 `json:"quota_interval,omitempty"`
	Subscription  *subscriptionRow       `json:"subscription"`
	Limits        map[string]limitView   `json:"limits"`
	Usage         usageView              `json:"usage"`
	Ledger        usageView              `json:"ledger"`
	Features      map[string]featureView `json:"features"`
	OverLimit     []overLimit            `json:"over_limit"`
	// Pinned is the subscription that is chosen whatever its plan's rank, nil for none.
	Pinned    *pinnedView    `json:"pinned"`
	Overrides []overrideView `json:"overrides"`
	// Changes are the amendments of the running period, oldest first.
	Changes []changeView `json:"changes"`
	// Subscriptions are the newest periods, newest first.
	Subscriptions []historyRow `json:"subscriptions"`
}

// viewOf shows a plan reading and the row it came from, which is nil on the
// default plan.
func viewOf(plan subscriptions.PlanInfo, row *subscriptionRow) workspaceView {
	from := fromPlan
	if plan.SubscriptionID == "" {
		from = fromDefault
	}
	sourceOf := func(field string) string {
		if plan.Snapshot.IsOverridden(field) {
			return fromOverride
		}
		return from
	}
	view := workspaceView{
		WorkspaceID: plan.WorkspaceID, Revision: plan.Revision,
		PlanKey: plan.Snapshot.PlanKey, PlanRevision: plan.Snapshot.PlanRevision,
		PeriodStart: plan.Period.Start, PeriodEnd: plan.Period.End, Subscription: row,
		QuotaInterval: plan.Snapshot.QuotaInterval,
		Limits:        map[string]limitView{}, Features: map[string]featureView{}, OverLimit: []overLimit{},
		Overrides: []overrideView{}, Changes: []changeView{}, Subscriptions: []historyRow{},
	}
	for _, name := range schemas.LimitNames {
		limit := plan.Snapshot.Limits.Named(name)
		view.Limits[name] = limitView{Value: limit.Pointer(), Unlimited: limit.IsUnlimited(), From: sourceOf(name)}
	}
	for name, limit := range plan.Snapshot.Features {
		view.Features[name] = featureView{Limit: limit.Pointer(), Unlimited: limit.IsUnlimited(), Included: true, From: sourceOf("features." + name)}
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
