package subscriptions

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Source is who decides about a subscription.
type Source string

// The sources. Periods of SourceEnterprise and SourceSystem are given by hand
// and renew by their interval; those of SourceStripe follow Stripe.
const (
	SourceStripe     Source = "stripe"
	SourceEnterprise Source = "enterprise"
	SourceSystem     Source = "system"
)

// The kinds of period rows that this package writes by itself. KindCycle stands
// for every period that starts a fresh quota after another one.
const (
	kindCreated = "created"
	kindCycle   = "cycle"
)

const (
	statusActive = "active"
	// statusNone is PlanInfo.Status without a subscription.
	statusNone = "none"
)

// Subscription is one billing period of one subscription. All instants are UTC.
type Subscription struct {
	// ID is a UUIDv7, new for each period.
	ID          string
	WorkspaceID string
	Source      Source
	// SourceID, with Account and Livemode, names the subscription at its source;
	// for one assigned by hand it is the workspace's id.
	SourceID     string
	Account      string
	Livemode     bool
	PlanKey      string
	PlanRevision int64
	Snapshot     Snapshot
	Quantity     int32
	Status       string
	PaymentState string
	// Kind is how the period came about: created, cycle and so on.
	Kind        string
	PeriodStart time.Time
	PeriodEnd   time.Time
	// UsageEpoch names the quota counter; rows that share it share the quota.
	UsageEpoch string
	// Interval and Anchor give the next period; without an interval the row does
	// not renew by itself.
	Interval Interval
	Anchor   time.Time
	// ClosedAt is when the period stopped counting, nil while it is open.
	ClosedAt   *time.Time
	PreviousID *string
	CreatedAt  time.Time
}

// Period is the row's span of time.
func (s Subscription) Period() Period { return Period{Start: s.PeriodStart, End: s.PeriodEnd} }

const subscriptionColumns = `id::text, workspace_id, source, source_id, account, livemode,
	plan_key, plan_revision, snapshot, quantity, status, payment_state, kind,
	period_start, period_end, usage_epoch, coalesce("interval", ''), anchor,
	closed_at, previous_id::text, created_at`

func scanSubscription(row pgx.CollectableRow) (Subscription, error) {
	var (
		s        Subscription
		snapshot []byte
		interval string
		anchor   *time.Time
	)
	err := row.Scan(&s.ID, &s.WorkspaceID, &s.Source, &s.SourceID, &s.Account, &s.Livemode,
		&s.PlanKey, &s.PlanRevision, &snapshot, &s.Quantity, &s.Status, &s.PaymentState, &s.Kind,
		&s.PeriodStart, &s.PeriodEnd, &s.UsageEpoch, &interval, &anchor,
		&s.ClosedAt, &s.PreviousID, &s.CreatedAt)
	if err != nil {
		return Subscription{}, err
	}
	if s.Snapshot, err = decodeSnapshot(snapshot); err != nil {
		return Subscription{}, fmt.Errorf("subscription %s: %w", s.ID, err)
	}
	if s.Interval, err = intervalFrom(interval); err != nil {
		return Subscription{}, fmt.Errorf("subscription %s: %w", s.ID, err)
	}
	s.PeriodStart, s.PeriodEnd, s.CreatedAt = s.PeriodStart.UTC(), s.PeriodEnd.UTC(), s.CreatedAt.UTC()
	if anchor != nil {
		s.Anchor = anchor.UTC()
	}
	if s.ClosedAt != nil {
		*s.ClosedAt = s.ClosedAt.UTC()
	}
	return s, nil
}

// intervalFrom reads a column: empty is no interval.
func intervalFrom(column string) (Interval, error) {
	if column == "" {
		return Interval{}, nil
	}
	return ParseInterval(column)
}

func (s Subscription) anchorOrNull() *time.Time {
	if s.Anchor.IsZero() {
		return nil
	}
	return &s.Anchor
}

const insertSubscriptionSQL = `INSERT INTO subscriptions (id, workspace_id, source, source_id, account, livemode,
	plan_key, plan_revision, snapshot, quantity, status, payment_state, kind,
	period_start, period_end, usage_epoch, "interval", anchor, previous_id)
VALUES (@id::uuid, @workspace, @source, @source_id, @account, @livemode,
	@plan_key, @plan_revision, @snapshot, @quantity, @status, @payment_state, @kind,
	@period_start, @period_end, @usage_epoch, nullif(@interval, ''), @anchor, @previous_id::uuid)
RETURNING ` + subscriptionColumns

func insertSubscription(ctx context.Context, tx pgx.Tx, s Subscription) (Subscription, error) {
	rows, err := tx.Query(ctx, insertSubscriptionSQL, pgx.NamedArgs{
		"id": s.ID, "workspace": s.WorkspaceID, "source": s.Source, "source_id": s.SourceID,
		"account": s.Account, "livemode": s.Livemode,
		"plan_key": s.PlanKey, "plan_revision": s.PlanRevision, "snapshot": s.Snapshot, "quantity": s.Quantity,
		"status": s.Status, "payment_state": s.PaymentState, "kind": s.Kind,
		"period_start": s.PeriodStart, "period_end": s.PeriodEnd, "usage_epoch": s.UsageEpoch,
		"interval": s.Interval.String(), "anchor": s.anchorOrNull(), "previous_id": s.PreviousID,
	})
	if err != nil {
		return Subscription{}, fmt.Errorf("open period: %w", err)
	}
	written, err := pgx.CollectExactlyOneRow(rows, scanSubscription)
	if err != nil {
		return Subscription{}, fmt.Errorf("open period: %w", err)
	}
	return written, nil
}

// successor is the row that follows old, with the same subscription and a fresh
// quota, in the given period and on the given terms.
func (s Subscription) successor(period Period, terms Snapshot) (Subscription, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Subscription{}, fmt.Errorf("make a subscription id: %w", err)
	}
	next := s
	next.ID, next.UsageEpoch = id.String(), id.String()
	next.Kind, next.PreviousID = kindCycle, &s.ID
	next.PeriodStart, next.PeriodEnd = period.Start, period.End
	next.setTerms(terms)
	return next, nil
}

func (s *Subscription) setTerms(terms Snapshot) {
	s.PlanKey, s.PlanRevision, s.Snapshot = terms.PlanKey, terms.PlanRevision, terms
}

// openNext closes a period at its successor's start and opens the successor.
func openNext(ctx context.Context, tx pgx.Tx, next Subscription) (Subscription, error) {
	_, err := tx.Exec(ctx, `UPDATE subscriptions SET closed_at = @at WHERE id = @id::uuid AND closed_at IS NULL`,
		pgx.NamedArgs{"at": next.PeriodStart, "id": *next.PreviousID})
	if err != nil {
		return Subscription{}, fmt.Errorf("close period %s: %w", *next.PreviousID, err)
	}
	return insertSubscription(ctx, tx, next)
}
