package subscriptions

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// amend writes what changes about a row and, for each field that does, an entry
// of the audit trail.
func amend(batch *pgx.Batch, to Subscription, changes []FieldChange, cause string) {
	batch.Queue(`UPDATE subscriptions SET plan_key = @plan_key, plan_revision = @plan_revision, snapshot = @snapshot,
			quantity = @quantity, status = @status, payment_state = @payment_state,
			period_end = @period_end, "interval" = nullif(@interval, ''), anchor = @anchor,
			cancel_at = @cancel_at, ended_at = @ended_at, closed_at = @closed_at, unpaid_since = @unpaid_since,
			billing_end = @billing_end, after_trial = nullif(@after_trial, ''), held = @held,
			overdue_since = @overdue_since, due_at = @due_at,
			source_created = @source_created, test_clock = @test_clock,
			plan_unresolved = @plan_unresolved, disputed = @disputed
		WHERE id = @id::uuid`, pgx.NamedArgs{
		"id": to.ID, "plan_key": to.PlanKey, "plan_revision": to.PlanRevision, "snapshot": to.Snapshot,
		"quantity": to.Quantity, "status": to.Status, "payment_state": to.PaymentState,
		"period_end": to.PeriodEnd, "interval": to.Interval.String(), "anchor": to.anchorOrNull(),
		"cancel_at": to.CancelAt, "ended_at": to.EndedAt, "closed_at": to.ClosedAt, "unpaid_since": to.UnpaidSince,
		"billing_end": to.Billing.End, "after_trial": to.AfterTrial, "held": to.Held,
		"overdue_since": to.OverdueSince, "due_at": to.DueAt,
		"source_created": orNull(to.SourceCreated), "test_clock": to.TestClock,
		"plan_unresolved": to.PlanUnresolved, "disputed": to.Disputed,
	})
	for _, change := range changes {
		batch.Queue(`INSERT INTO subscription_changes (subscription_id, at, field, old_value, new_value, cause)
			VALUES (@id::uuid, clock_timestamp(), @field, to_jsonb(nullif(@from, '')), to_jsonb(nullif(@to, '')), @cause)`,
			pgx.NamedArgs{"id": to.ID, "field": change.Field, "from": change.From, "to": change.To, "cause": cause})
	}
}

// The fields of a change that an election looks at.
const (
	fieldPlanKey      = "plan_key"
	fieldStatus       = "status"
	fieldPaymentState = "payment_state"
	fieldDisputed     = "disputed"
)

// fieldOverdueSince is a change that no reading of the workspace's plan depends on.
const fieldOverdueSince = "overdue_since"

// subscriptionText is what an amendment or an end can change, as text.
func subscriptionText(s Subscription) []text {
	list := []text{
		{fieldPlanKey, s.PlanKey},
		{"plan_revision", strconv.FormatInt(s.PlanRevision, 10)},
	}
	list = append(list, s.Snapshot.text()...)
	return append(list,
		text{"period_end", instantText(&s.PeriodEnd)},
		text{"interval", s.Interval.String()},
		text{"anchor", instantText(s.anchorOrNull())},
		text{"quantity", strconv.FormatInt(int64(s.Quantity), 10)},
		text{fieldStatus, s.Status},
		text{fieldPaymentState, s.PaymentState},
		text{"cancel_at", instantText(s.CancelAt)},
		text{"ended_at", instantText(s.EndedAt)},
		text{"billing_end", s.billingEndText()},
		text{"quota_interval", s.Snapshot.QuotaInterval},
		text{"after_trial", s.AfterTrial},
		text{fieldOverdueSince, instantText(s.OverdueSince)},
		text{"source_created", instantText(orNull(s.SourceCreated))},
		text{"plan_unresolved", truthText(s.PlanUnresolved)},
		text{fieldDisputed, truthText(s.Disputed)},
	)
}

// billingEndText is empty where the billing period ends with the row's own.
func (s Subscription) billingEndText() string {
	if s.Billing.End.Equal(s.PeriodEnd) {
		return ""
	}
	return instantText(&s.Billing.End)
}

// truthText is empty for what is not so.
func truthText(is bool) string {
	if !is {
		return ""
	}
	return "true"
}

func instantText(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.Format(time.RFC3339Nano)
}

// Change is an amendment of a running period.
type Change struct {
	// At is when it was written, UTC.
	At time.Time
	FieldChange
	// Cause is who or what asked for it.
	Cause string
}

// changeOf is a change with the row it belongs to.
type changeOf struct {
	Change
	subscription string
}

func scanChange(row pgx.CollectableRow) (changeOf, error) {
	var c changeOf
	err := row.Scan(&c.subscription, &c.At, &c.Field, &c.From, &c.To, &c.Cause)
	c.At = c.At.UTC()
	return c, err
}

func changesOf(ctx context.Context, q queryer, subscriptions []string) (map[string][]Change, error) {
	rows, err := q.Query(ctx, `SELECT subscription_id::text, at, field,
			coalesce(old_value #>> '{}', ''), coalesce(new_value #>> '{}', ''), cause
		FROM subscription_changes WHERE subscription_id = ANY(@ids::uuid[]) ORDER BY id`,
		pgx.NamedArgs{"ids": subscriptions})
	if err != nil {
		return nil, fmt.Errorf("read changes: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanChange)
	if err != nil {
		return nil, fmt.Errorf("read changes: %w", err)
	}
	changes := map[string][]Change{}
	for _, c := range found {
		changes[c.subscription] = append(changes[c.subscription], c.Change)
	}
	return changes, nil
}
