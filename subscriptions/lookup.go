package subscriptions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// catchUpAttempts is how often PlanInfo reads again after it caught up: once is
// the rule, more only when the new period ends while it is read.
const catchUpAttempts = 3

// PlanInfo tells what a workspace is measured against at an instant. It takes
// one round trip to the database, and two while a period is held; it is what Cache
// loads.
//
//	no row of the workspace                default plan, revision 0 (or ErrNotEntitled)
//	no active subscription                 default plan
//	its period contains the instant        the subscription
//	a held period follows it               the subscription, for as long as that period
//	one that is yet to begin follows it    the subscription, until then
//	over, without news of Stripe           the subscription, until the overdue grace ends
//	anything else that time has changed    carried out first, then read again
//	the period that would contain it is ahead   ErrPeriodNotStarted
//
// A period that has ended is never returned, and one is only rolled when both
// the instant and the database's clock have passed its end, so that no single
// wrong clock can hand out a fresh quota early. The same holds for a grace: what
// PlanInfo.ValidUntil tells has passed by both clocks before it counts. The default
// plan's period is the calendar month of UTC around the instant, and its usage epoch
// is unique within the workspace.
//
// ErrNoDefaultPlan means that a default plan is needed and there is none. Every
// other error means that nothing is known; it never stands for "no
// subscription".
func (s *Store) PlanInfo(ctx context.Context, workspace string, at time.Time) (PlanInfo, error) {
	at = at.UTC()
	for range catchUpAttempts {
		found, err := s.read(ctx, workspace)
		if err != nil {
			return PlanInfo{}, fmt.Errorf("read plan of workspace %s: %w", workspace, err)
		}
		info, err := found.at(at, s.options)
		if err == nil {
			return info, nil
		}
		if !errors.Is(err, errDue) {
			return PlanInfo{}, fmt.Errorf("plan of workspace %s: %w", workspace, err)
		}
		if err := s.catchUp(ctx, workspace, at); err != nil {
			return PlanInfo{}, fmt.Errorf("renew subscription of workspace %s: %w", workspace, err)
		}
	}
	return PlanInfo{}, fmt.Errorf("plan of workspace %s: periods end faster than they are read: %w", workspace, ErrPeriodNotStarted)
}

// errDue means that time has changed the active period, which is to be carried out.
var errDue = errors.New("period is over")

// reading is what the database says about a workspace at one moment.
type reading struct {
	workspace string
	// revision is nil for a workspace never seen.
	revision *int64
	// active is the row that the workspace points to, nil without one.
	active *Subscription
	// held is the open row behind a closed active one, held or ahead; nil without it.
	held        *Subscription
	defaultPlan *PlanRevision
	overrides   []Override
	readAt      time.Time
}

// at resolves a reading for an instant; errDue asks to catch up first.
func (r reading) at(at time.Time, options StoreOptions) (PlanInfo, error) {
	switch {
	case r.revision == nil && options.DenyUnknown:
		return PlanInfo{}, ErrNotEntitled
	case r.active == nil:
		return r.onDefault(at)
	case at.Before(r.active.PeriodStart) && !r.active.TestClock:
		return PlanInfo{}, fmt.Errorf("%w: subscription %s begins %s, asked for %s", ErrPeriodNotStarted,
			r.active.ID, r.active.PeriodStart.Format(time.RFC3339Nano), at.Format(time.RFC3339Nano))
	}
	info := r.onSubscription(at, options.Policy)
	switch end := info.until(); {
	case at.Before(end):
		return info.overriddenAt(at), nil
	case r.readAt.Before(end):
		return PlanInfo{}, fmt.Errorf("%w: subscription %s goes on until %s, asked for %s", ErrPeriodNotStarted,
			r.active.ID, end.Format(time.RFC3339Nano), at.Format(time.RFC3339Nano))
	default:
		return PlanInfo{}, errDue
	}
}

func (r reading) info() PlanInfo {
	info := PlanInfo{WorkspaceID: r.workspace, Status: statusNone, ReadAt: r.readAt, Exact: true}
	if r.revision != nil {
		info.Revision = *r.revision
	}
	return info
}

func (r reading) onDefault(at time.Time) (PlanInfo, error) {
	if r.defaultPlan == nil {
		return PlanInfo{}, ErrNoDefaultPlan
	}
	info := r.info()
	info.Period = CalendarMonth(at)
	info.UsageEpoch = DefaultEpoch(info.Period.Start)
	info.Snapshot = snapshotOf(*r.defaultPlan).with(liveOverrides(r.overrides, at))
	return info.overriddenAt(at), nil
}

// onSubscription is the active row as it may be served at the instant, if it ends
// after it.
func (r reading) onSubscription(at time.Time, policy Policy) PlanInfo {
	info := r.info()
	info.SubscriptionID, info.Status, info.UsageEpoch = r.active.ID, r.active.Status, r.active.UsageEpoch
	info.Period, info.Snapshot = r.active.periodAround(at), r.active.Snapshot
	counts := r.active
	switch {
	case r.active.ClosedAt == nil:
		info.Period.End = later(info.Period.End, r.active.lasts(at, policy))
	case r.held != nil && r.held.isAhead(at):
		counts = r.held
		info.Period.End = r.held.PeriodStart
	case r.held != nil && policy.withholds(*r.held):
		counts = r.held
		info.Period.End = r.held.Billing.End
	default:
		info.ValidUntil = r.active.PeriodStart // it counts no longer
		return info
	}
	until, entitled := policy.entitledUntil(*counts)
	switch {
	case !entitled:
		info.ValidUntil = r.active.PeriodStart
	case !until.IsZero() && !until.After(info.Period.End):
		info.ValidUntil = until
	}
	return info
}

// periodAround is the row's period. One on a test clock, which may be anywhere, is
// extended by the calendar month of the instant.
func (s Subscription) periodAround(at time.Time) Period {
	period := s.Period()
	if s.TestClock && !period.Contains(at) {
		month := CalendarMonth(at)
		period = Period{Start: earlier(period.Start, month.Start), End: later(period.End, month.End)}
	}
	return period
}

// lasts is where an open row's period ends as far as is known at the instant: later
// than it says, while its source has not told what follows.
func (s Subscription) lasts(at time.Time, policy Policy) time.Time {
	if s.awaitsNews() && !s.TestClock && !s.PeriodEnd.Before(s.Billing.End) && !at.Before(s.PeriodEnd) {
		return s.Billing.End.Add(policy.overdueGrace())
	}
	return s.PeriodEnd
}

// DefaultEpoch names the quota counter of the default plan in the calendar month
// that begins at start.
func DefaultEpoch(start time.Time) string { return "default." + start.UTC().Format("2006-01") }

const selectRevision = `SELECT w.revision, clock_timestamp(),
		(SELECT jsonb_agg(o ORDER BY o.field COLLATE "C") FROM plan_overrides o WHERE o.workspace_id = asked.id)
	FROM (VALUES (@workspace::text)) AS asked (id) LEFT JOIN workspaces w ON w.id = asked.id`

const selectActive = `SELECT ` + subscriptionColumns + ` FROM subscriptions
	WHERE id = (SELECT active_subscription_id FROM workspaces WHERE id = @workspace)`

// selectNext finds the open row of a subscription if it follows the closed one.
const selectNext = `SELECT ` + subscriptionColumns + ` FROM subscriptions
	WHERE source = @source AND account = @account AND livemode = @livemode AND source_id = @source_id
		AND closed_at IS NULL AND previous_id = @id::uuid`

// read sends its queries in one round trip, and another one if the row that counts is
// closed. A later query sees the same or a later state, which is never older than the
// revision says.
func (s *Store) read(ctx context.Context, workspace string) (reading, error) {
	found := reading{workspace: workspace}
	batch := &pgx.Batch{}
	args := pgx.NamedArgs{"workspace": workspace}
	batch.Queue(selectRevision, args).QueryRow(func(row pgx.Row) error {
		var overrides []overrideRow
		err := row.Scan(&found.revision, &found.readAt, &overrides)
		found.readAt, found.overrides = found.readAt.UTC(), overridesFrom(overrides)
		return err
	})
	batch.Queue(selectActive, args).Query(func(rows pgx.Rows) error {
		var err error
		found.active, err = atMostOnePeriod(rows)
		return err
	})
	batch.Queue(selectDefaultPlan).Query(func(rows pgx.Rows) error {
		plans, err := pgx.CollectRows(rows, scanPlan)
		if len(plans) > 0 {
			found.defaultPlan = &plans[0]
		}
		return err
	})
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return reading{}, err
	}
	if found.active == nil || found.active.ClosedAt == nil {
		return found, nil
	}
	rows, err := s.pool.Query(ctx, selectNext, pgx.NamedArgs{
		"source": found.active.Source, "account": found.active.Account, "livemode": found.active.Livemode,
		"source_id": found.active.SourceID, "id": found.active.ID,
	})
	if err != nil {
		return reading{}, err
	}
	found.held, err = atMostOnePeriod(rows)
	return found, err
}
