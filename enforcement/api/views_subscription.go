package api

import (
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

// SubscriptionRow is a row of a subscription: one period of it.
type SubscriptionRow struct {
	ID          string `json:"id"`
	WorkspaceID string `json:"workspace_id"`
	// Source is stripe, enterprise or system, and SourceID its name for the subscription.
	Source       string `json:"source"`
	SourceID     string `json:"source_id"`
	Account      string `json:"account"`
	Livemode     bool   `json:"livemode"`
	Status       string `json:"status"`
	PaymentState string `json:"payment_state"`
	// Kind is what began the period.
	Kind         string    `json:"kind"`
	Quantity     int32     `json:"quantity"`
	PlanKey      string    `json:"plan_key"`
	PlanRevision int64     `json:"plan_revision"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	// UsageEpoch names the quota counter: rows that share it share the quota.
	UsageEpoch string `json:"usage_epoch"`
	// Interval is how long a period is, absent where the source rolls them.
	Interval string `json:"interval,omitempty"`
	// The billing period is longer than the row's own where the plan has a quota interval.
	BillingStart time.Time `json:"billing_start"`
	BillingEnd   time.Time `json:"billing_end"`
	AfterTrial   string    `json:"after_trial,omitempty"`
	// UnpaidSince is the start of the first unpaid period, and OverdueSince since when
	// the source should have told what follows.
	UnpaidSince  *time.Time `json:"unpaid_since,omitempty"`
	OverdueSince *time.Time `json:"overdue_since,omitempty"`
	CancelAt     *time.Time `json:"cancel_at"`
	// PlanUnresolved says that none of its prices is in the catalog: the last plan stays.
	PlanUnresolved bool `json:"plan_unresolved"`
	// Disputed says that its money is withdrawn.
	Disputed bool `json:"disputed,omitempty"`
	// On a test clock the period may be anywhere.
	TestClock  bool       `json:"test_clock,omitempty"`
	ClosedAt   *time.Time `json:"closed_at"`
	PreviousID *string    `json:"previous_id"`
}

// ViewSubscription is how a row is shown, nil for none.
func ViewSubscription(s *subscriptions.Subscription) *SubscriptionRow {
	if s == nil {
		return nil
	}
	return &SubscriptionRow{
		ID: s.ID, WorkspaceID: s.WorkspaceID, Source: string(s.Source), SourceID: s.SourceID, Account: s.Account, Livemode: s.Livemode,
		Status: s.Status, PaymentState: s.PaymentState, Kind: s.Kind, Quantity: s.Quantity,
		PlanKey: s.PlanKey, PlanRevision: s.PlanRevision, PeriodStart: s.PeriodStart, PeriodEnd: s.PeriodEnd,
		UsageEpoch: s.UsageEpoch, Interval: s.Interval.String(), BillingStart: s.Billing.Start, BillingEnd: s.Billing.End,
		AfterTrial: s.AfterTrial, UnpaidSince: s.UnpaidSince, OverdueSince: s.OverdueSince, CancelAt: s.CancelAt, ClosedAt: s.ClosedAt, PreviousID: s.PreviousID,
		PlanUnresolved: s.PlanUnresolved, Disputed: s.Disputed, TestClock: s.TestClock,
	}
}

// SubscriptionView is a row with its amendments, oldest first.
type SubscriptionView struct {
	SubscriptionRow

	Changes []ChangeView `json:"changes" nullable:"false"`
}

// ChangeView is an amendment of a running period. From and To are texts: a number,
// "unlimited", an instant or a word, empty for none.
type ChangeView struct {
	At    time.Time `json:"at"`
	Field string    `json:"field"`
	From  string    `json:"from"`
	To    string    `json:"to"`
	Cause string    `json:"cause"`
}

func historyOf(periods []subscriptions.SubscriptionHistory) []SubscriptionView {
	rows := make([]SubscriptionView, len(periods))
	for i, period := range periods {
		rows[i] = SubscriptionView{SubscriptionRow: *ViewSubscription(&period.Subscription), Changes: make([]ChangeView, len(period.Changes))}
		for n, c := range period.Changes {
			rows[i].Changes[n] = ChangeView{At: c.At, Field: c.Field, From: c.From, To: c.To, Cause: c.Cause}
		}
	}
	return rows
}
