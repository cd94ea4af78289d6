package subscriptions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// rollAttempts is how often PlanInfo reads again after it rolled a period: once
// is the rule, more only when the new period ends while it is read.
const rollAttempts = 3

// PlanInfo tells what a workspace is measured against at an instant. It takes
// one round trip to the database; it is what Cache loads.
//
//	no row of the workspace                     default plan, revision 0 (or ErrNotEntitled)
//	no active subscription, or it was closed    default plan
//	its period contains the instant             the subscription
//	over, and the subscription has an interval  rolled first, then the new period
//	over, without an interval                   default plan
//	the period that would contain it is ahead   ErrPeriodNotStarted
//
// A period that has ended is never returned, and one is only rolled when both
// the instant and the database's clock have passed its end, so that no single
// wrong clock can hand out a fresh quota early. The default plan's period is the
// calendar month of UTC around the instant, and its usage epoch is unique within
// the workspace.
//
// ErrNoDefaultPlan means that a default plan is needed and there is none. Every
// other error means that nothing is known; it never stands for "no
// subscription".
func (s *Store) PlanInfo(ctx context.Context, workspace string, at time.Time) (PlanInfo, error) {
	at = at.UTC()
	for range rollAttempts {
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
		if err := s.roll(ctx, workspace, at); err != nil {
			return PlanInfo{}, fmt.Errorf("renew subscription of workspace %s: %w", workspace, err)
		}
	}
	return PlanInfo{}, fmt.Errorf("plan of workspace %s: periods end faster than they are read: %w", workspace, ErrPeriodNotStarted)
}

// errDue means that the active period is over and its successor is to be opened.
var errDue = errors.New("period is over")

// reading is what the database says about a workspace at one moment.
type reading struct {
	workspace string
	// revision is nil for a workspace never seen.
	revision *int64
	// active is the open row that the workspace points to, nil without one.
	active      *activePeriod
	defaultPlan *PlanRevision
	overrides   []Override
	readAt      time.Time
}

type activePeriod struct {
	id, status, usageEpoch string
	period                 Period
	renews                 bool
	snapshot               Snapshot
}

// at resolves a reading for an instant; errDue asks for a roll first.
func (r reading) at(at time.Time, options StoreOptions) (PlanInfo, error) {
	switch {
	case r.revision == nil && options.DenyUnknown:
		return PlanInfo{}, ErrNotEntitled
	case r.active == nil:
		return r.onDefault(at)
	case at.Before(r.active.period.Start):
		return PlanInfo{}, fmt.Errorf("%w: subscription %s begins %s, asked for %s", ErrPeriodNotStarted,
			r.active.id, r.active.period.Start.Format(time.RFC3339Nano), at.Format(time.RFC3339Nano))
	case at.Before(r.active.period.End):
		return r.onSubscription(at), nil
	case !r.active.renews:
		return r.onDefault(at)
	case r.readAt.Before(r.active.period.End):
		return PlanInfo{}, fmt.Errorf("%w: subscription %s renews %s, asked for %s", ErrPeriodNotStarted,
			r.active.id, r.active.period.End.Format(time.RFC3339Nano), at.Format(time.RFC3339Nano))
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
	info.ValidUntil = info.Snapshot.validUntil()
	return info, nil
}

// DefaultEpoch names the quota counter of the default plan in the calendar month
// that begins at start.
func DefaultEpoch(start time.Time) string { return "default." + start.UTC().Format("2006-01") }

func (r reading) onSubscription(at time.Time) PlanInfo {
	info := r.info()
	info.SubscriptionID, info.Status, info.UsageEpoch = r.active.id, r.active.status, r.active.usageEpoch
	info.Period, info.Snapshot = r.active.period, r.active.snapshot.at(at)
	info.ValidUntil = info.Snapshot.validUntil()
	return info
}

const selectActive = `SELECT w.revision, clock_timestamp(),
		s.id::text, s.status, s.usage_epoch, s.period_start, s.period_end, s."interval" IS NOT NULL, s.snapshot,
		(SELECT jsonb_agg(o ORDER BY o.field COLLATE "C") FROM plan_overrides o WHERE o.workspace_id = asked.id)
	FROM (VALUES (@workspace::text)) AS asked (id)
	LEFT JOIN workspaces w ON w.id = asked.id
	LEFT JOIN subscriptions s ON s.id = w.active_subscription_id AND s.closed_at IS NULL`

// read sends both queries in one round trip. The second one sees the same or
// a later state, which is never older than the revision says.
func (s *Store) read(ctx context.Context, workspace string) (reading, error) {
	found := reading{workspace: workspace}
	batch := &pgx.Batch{}
	batch.Queue(selectActive, pgx.NamedArgs{"workspace": workspace}).Query(func(rows pgx.Rows) error {
		_, err := pgx.CollectExactlyOneRow(rows, found.scanActive)
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
	return found, nil
}

func (r *reading) scanActive(row pgx.CollectableRow) (struct{}, error) {
	var (
		id, status, epoch *string
		start, end        *time.Time
		renews            *bool
		snapshot          []byte
		overrides         []overrideRow
	)
	err := row.Scan(&r.revision, &r.readAt, &id, &status, &epoch, &start, &end, &renews, &snapshot, &overrides)
	r.readAt, r.overrides = r.readAt.UTC(), overridesFrom(overrides)
	if err != nil || id == nil {
		return struct{}{}, err
	}
	terms, err := decodeSnapshot(snapshot)
	if err != nil {
		return struct{}{}, fmt.Errorf("subscription %s: %w", *id, err)
	}
	r.active = &activePeriod{
		id: *id, status: *status, usageEpoch: *epoch,
		period: Period{Start: start.UTC(), End: end.UTC()}, renews: *renews, snapshot: terms,
	}
	return struct{}{}, nil
}
