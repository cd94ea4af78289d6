package subscriptions

import (
	"fmt"
	"time"

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

// How a period came about.
const (
	KindCreated = "created"
	// KindCycle is the period that was due, or one opened by hand.
	KindCycle    = "cycle"
	KindTrialEnd = "trial_end"
	// KindAnchorReset and KindPlanChange are periods that began before the one
	// before them was over.
	KindAnchorReset = "anchor_reset"
	KindPlanChange  = "plan_change"
	KindResume      = "resume"
	// KindEnded is no period's: the news of a subscription's end carry it.
	KindEnded = "ended"
)

// Subscription is one period of one subscription: its billing period, or as much of
// it as one quota lasts. All instants are UTC.
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
	// Billing is the billing period that the row's own period lies in. They are the
	// same unless the plan has a quota interval.
	Billing Period
	// UsageEpoch names the quota counter; rows that share it share the quota.
	UsageEpoch string
	// Interval and Anchor give the next period; without an interval the row does
	// not renew by itself.
	Interval Interval
	Anchor   time.Time
	// ClosedAt is when the period stopped counting, nil while it is open.
	ClosedAt   *time.Time
	PreviousID *string
	// CancelAt is when the subscription is set to end, EndedAt when it did; nil if
	// it is not or did not.
	CancelAt *time.Time
	EndedAt  *time.Time
	// GapFrom is where the period before ended, if it ended before this one began.
	GapFrom *time.Time
	// UnpaidSince is where the first unpaid period began, nil unless past due.
	UnpaidSince *time.Time
	// AfterTrial is what becomes of a trial that is over: AfterTrialConvert,
	// AfterTrialExpire or AfterTrialDefault; empty without one of ours.
	AfterTrial string
	// Held says that the period began unpaid under Policy.HoldUnpaid, and was not
	// paid since.
	Held bool
	// OverdueSince is when the billing period ended, if it is over and the source has
	// said nothing of the next one.
	OverdueSince *time.Time
	// DueAt is when time alone changes something next, or nil: see Policy.Passage.
	DueAt     *time.Time
	CreatedAt time.Time
	SourceFacts
}

// Period is the row's span of time.
func (s Subscription) Period() Period { return Period{Start: s.PeriodStart, End: s.PeriodEnd} }

// Key names the subscription that the row is a period of.
func (s Subscription) Key() SubscriptionKey {
	return SubscriptionKey{Source: s.Source, Account: s.Account, Livemode: s.Livemode, SourceID: s.SourceID}
}

// awaitsNews reports whether only its source can tell what follows the period.
func (s Subscription) awaitsNews() bool { return s.Source == SourceStripe && s.Interval.IsZero() }

// isOverdueOnce reports whether news are overdue when the billing period is over.
func (s Subscription) isOverdueOnce() bool { return s.awaitsNews() && s.mayCount() && !s.TestClock }

// mayCount reports whether the status lets the workspace use its plan, as long as
// no grace is over.
func (s Subscription) mayCount() bool {
	stands := standingOf(s.Status)
	return stands == standingEntitled || stands == standingGrace
}

// mostSkew is how far the clock of a source may be ahead of the database's: a period
// that begins so soon is awaited.
const mostSkew = time.Second

// isAhead reports whether the source told of the period well before it begins. One
// on a test clock may begin at any time.
func (s Subscription) isAhead(at time.Time) bool {
	return !s.TestClock && at.Add(mostSkew).Before(s.PeriodStart)
}

// began orders subscriptions by age.
func (s Subscription) began() time.Time {
	if s.SourceCreated.IsZero() {
		return s.CreatedAt
	}
	return s.SourceCreated
}

func (s Subscription) unpaid() bool {
	return s.PaymentState == PaymentPending || s.PaymentState == PaymentFailed
}

const subscriptionColumns = `id::text, workspace_id, source, source_id, account, livemode,
	plan_key, plan_revision, snapshot, quantity, status, payment_state, kind,
	period_start, period_end, usage_epoch, coalesce("interval", ''), anchor,
	closed_at, previous_id::text, cancel_at, ended_at, gap_from, unpaid_since, created_at,
	billing_start, billing_end, coalesce(after_trial, ''), held, overdue_since, due_at,
	source_created, test_clock, plan_unresolved, disputed`

func scanSubscription(row pgx.CollectableRow) (Subscription, error) { return scanSubscriptionAnd(row) }

// scanSubscriptionAnd scans the columns that a query has after the row's own, too.
func scanSubscriptionAnd(row pgx.CollectableRow, more ...any) (Subscription, error) {
	var (
		s        Subscription
		snapshot []byte
		interval string
		anchor   *time.Time
		created  *time.Time
	)
	err := row.Scan(append([]any{
		&s.ID, &s.WorkspaceID, &s.Source, &s.SourceID, &s.Account, &s.Livemode,
		&s.PlanKey, &s.PlanRevision, &snapshot, &s.Quantity, &s.Status, &s.PaymentState, &s.Kind,
		&s.PeriodStart, &s.PeriodEnd, &s.UsageEpoch, &interval, &anchor,
		&s.ClosedAt, &s.PreviousID, &s.CancelAt, &s.EndedAt, &s.GapFrom, &s.UnpaidSince, &s.CreatedAt,
		&s.Billing.Start, &s.Billing.End, &s.AfterTrial, &s.Held, &s.OverdueSince, &s.DueAt,
		&created, &s.TestClock, &s.PlanUnresolved, &s.Disputed,
	}, more...)...)
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
	s.Billing = Period{Start: s.Billing.Start.UTC(), End: s.Billing.End.UTC()}
	if anchor != nil {
		s.Anchor = anchor.UTC()
	}
	if created != nil {
		s.SourceCreated = created.UTC()
	}
	for _, at := range []*time.Time{s.ClosedAt, s.CancelAt, s.EndedAt, s.GapFrom, s.UnpaidSince, s.OverdueSince, s.DueAt} {
		if at != nil {
			*at = at.UTC()
		}
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

func (s Subscription) anchorOrNull() *time.Time { return orNull(s.Anchor) }

func orNull(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

const insertSubscriptionSQL = `INSERT INTO subscriptions (id, workspace_id, source, source_id, account, livemode,
	plan_key, plan_revision, snapshot, quantity, status, payment_state, kind,
	period_start, period_end, usage_epoch, "interval", anchor, previous_id, cancel_at, gap_from, unpaid_since,
	billing_start, billing_end, after_trial, held, overdue_since, due_at,
	source_created, test_clock, plan_unresolved, disputed)
VALUES (@id::uuid, @workspace, @source, @source_id, @account, @livemode,
	@plan_key, @plan_revision, @snapshot, @quantity, @status, @payment_state, @kind,
	@period_start, @period_end, @usage_epoch, nullif(@interval, ''), @anchor, @previous_id::uuid,
	@cancel_at, @gap_from, @unpaid_since,
	@billing_start, @billing_end, nullif(@after_trial, ''), @held, @overdue_since, @due_at,
	@source_created, @test_clock, @plan_unresolved, @disputed)
RETURNING created_at`

// insertSubscription writes a row, which knows when it was made once the batch was sent.
func insertSubscription(batch *pgx.Batch, s *Subscription) {
	batch.Queue(insertSubscriptionSQL, pgx.NamedArgs{
		"id": s.ID, "workspace": s.WorkspaceID, "source": s.Source, "source_id": s.SourceID,
		"account": s.Account, "livemode": s.Livemode,
		"plan_key": s.PlanKey, "plan_revision": s.PlanRevision, "snapshot": s.Snapshot, "quantity": s.Quantity,
		"status": s.Status, "payment_state": s.PaymentState, "kind": s.Kind,
		"period_start": s.PeriodStart, "period_end": s.PeriodEnd, "usage_epoch": s.UsageEpoch,
		"interval": s.Interval.String(), "anchor": s.anchorOrNull(), "previous_id": s.PreviousID,
		"cancel_at": s.CancelAt, "gap_from": s.GapFrom, "unpaid_since": s.UnpaidSince,
		"billing_start": s.Billing.Start, "billing_end": s.Billing.End, "after_trial": s.AfterTrial,
		"held": s.Held, "overdue_since": s.OverdueSince, "due_at": s.DueAt,
		"source_created": orNull(s.SourceCreated), "test_clock": s.TestClock,
		"plan_unresolved": s.PlanUnresolved, "disputed": s.Disputed,
	}).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&s.CreatedAt)
		s.CreatedAt = s.CreatedAt.UTC()
		return err
	})
}

func (s *Subscription) setTerms(terms Snapshot) {
	s.PlanKey, s.PlanRevision, s.Snapshot = terms.PlanKey, terms.PlanRevision, terms
}
