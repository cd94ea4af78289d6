package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

const (
	// historyLength is how many periods a WorkspaceView tells of.
	historyLength = 5
	// maxExecutions bounds how many running executions are listed.
	maxExecutions = 10_000
)

// ErrPeriodLost is why usage is not exact where Redis knows nothing of a period that
// the ledger has counted in: until the next execution.
var ErrPeriodLost = errors.New("the period is lost in Redis")

// Gauge reads what Redis counts and changes nothing; enforcement.Enforcer is one.
type Gauge interface {
	Outstanding(ctx context.Context, workspace, usageEpoch string) (enforcement.Outstanding, error)
	Running(ctx context.Context, q enforcement.RunningQuery) ([]enforcement.Running, error)
	Probe(ctx context.Context, plan subscriptions.PlanInfo, payloads []int64) ([]schemas.DecisionMade, error)
}

// FeatureCounts reads what is used of features; usage.Counters is one.
type FeatureCounts interface {
	Features(ctx context.Context, plan subscriptions.PlanInfo) (map[string]usage.Feature, error)
	Check(ctx context.Context, changes []usage.Change) ([]usage.Verdict, error)
}

// PlanReader tells the plan of a workspace; subscriptions.Cache is one.
type PlanReader interface {
	Lookup(ctx context.Context, workspace string, at time.Time) (subscriptions.PlanInfo, error)
}

// ReaderOptions makes a Reader. What is zero of Plans, RedisTimeout, Now and Log has the
// default of its comment; the rest is required.
type ReaderOptions struct {
	Store  *subscriptions.Store
	Ledger *ledger.Store
	Gauge  Gauge
	Counts FeatureCounts
	// Plans is what Check asks: the store.
	Plans PlanReader
	// RedisTimeout is how long Redis is waited for before the ledger stands in: 3 seconds.
	RedisTimeout time.Duration
	// Now is the clock: time.Now.
	Now func() time.Time
	// Log hears why usage is not exact: nowhere.
	Log *slog.Logger
}

// Reader shows workspaces, and tells beforehand what would be decided. It writes nothing
// but what time has changed of a subscription (see subscriptions.Store.PlanInfo), and is
// safe for concurrent use.
//
// An id that is none is a *usage.InvalidArgument. A workspace that may have no plan
// is subscriptions.ErrNotEntitled. While a service that is needed is away the error wraps
// enforcement.ErrUnavailable.
type Reader struct {
	options ReaderOptions
}

// NewReader makes a Reader. It talks to no server by itself.
func NewReader(o ReaderOptions) *Reader {
	o.RedisTimeout = positive(o.RedisTimeout, 3*time.Second)
	if o.Plans == nil {
		o.Plans = fresh{o.Store}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Reader{options: o}
}

// fresh reads each plan from the database.
type fresh struct{ store *subscriptions.Store }

func (f fresh) Lookup(ctx context.Context, workspace string, at time.Time) (subscriptions.PlanInfo, error) {
	return f.store.PlanInfo(ctx, workspace, at)
}

// Workspace is all that is known of a workspace now. One that was never seen is on the
// default plan and has revision 0. The executions are what Redis counts, which decisions
// are measured against; while Redis is away they are the ledger's, with Exact false.
func (r *Reader) Workspace(ctx context.Context, workspace string) (WorkspaceView, error) {
	if err := checkWorkspace(workspace); err != nil {
		return WorkspaceView{}, err
	}
	view, err := r.view(ctx, workspace)
	if err != nil {
		return WorkspaceView{}, unread("read workspace "+workspace, err)
	}
	return view, nil
}

func (r *Reader) view(ctx context.Context, workspace string) (WorkspaceView, error) {
	plan, err := r.options.Store.PlanInfo(ctx, workspace, r.options.Now())
	if err != nil {
		return WorkspaceView{}, err
	}
	view, err := r.known(ctx, plan)
	if err != nil {
		return WorkspaceView{}, err
	}
	features, err := r.options.Counts.Features(ctx, plan)
	if err != nil {
		return WorkspaceView{}, err
	}
	if view.Usage, view.Ledger, err = r.usage(ctx, plan); err != nil {
		return WorkspaceView{}, err
	}
	view.addFeatures(plan, features)
	view.findOverLimit(features)
	return view, nil
}

// known is all of the view but what is used.
func (r *Reader) known(ctx context.Context, plan subscriptions.PlanInfo) (WorkspaceView, error) {
	store := r.options.Store
	workspace, err := store.Workspace(ctx, plan.WorkspaceID)
	if errors.Is(err, subscriptions.ErrUnknownWorkspace) {
		return viewOf(plan, nil), nil
	}
	if err != nil {
		return WorkspaceView{}, err
	}
	var row *SubscriptionRow
	if s := workspace.Subscription; s != nil && s.ID == plan.SubscriptionID {
		row = ViewSubscription(s)
	}
	view := viewOf(plan, row)
	view.Pinned = pinnedOf(workspace.Pinned)
	overrides, err := store.Overrides(ctx, plan.WorkspaceID)
	if err != nil {
		return WorkspaceView{}, err
	}
	view.Overrides = ViewOverrides(overrides)
	periods, err := store.Subscriptions(ctx, plan.WorkspaceID, historyLength)
	if err != nil {
		return WorkspaceView{}, err
	}
	view.Subscriptions = historyOf(periods)
	for _, period := range view.Subscriptions {
		if period.ID == plan.SubscriptionID {
			view.Changes = period.Changes
		}
	}
	return view, nil
}

// usage is what Redis counts and what the ledger has, which stands in for the former.
func (r *Reader) usage(ctx context.Context, plan subscriptions.PlanInfo) (UsageView, LedgerView, error) {
	recorded, err := r.options.Ledger.Usage(ctx, plan.WorkspaceID, plan.UsageEpoch)
	if err != nil {
		return UsageView{}, LedgerView{}, err
	}
	now := r.options.Now().UTC()
	folded := LedgerView{Executions: recorded.Used, Concurrent: int64(len(recorded.Leases)), Peak: recorded.Peak, AsOf: now}
	asking, cancel := context.WithTimeout(ctx, r.options.RedisTimeout)
	defer cancel()
	held, err := r.options.Gauge.Outstanding(asking, plan.WorkspaceID, plan.UsageEpoch)
	if err == nil && !held.Open && recorded.Used > 0 {
		err = ErrPeriodLost
	}
	if err != nil {
		r.options.Log.WarnContext(ctx, "usage is the ledger's", "workspace", plan.WorkspaceID, "error", err)
		return UsageView{Executions: folded.Executions, Concurrent: folded.Concurrent, Peak: folded.Peak, AsOf: now, Cause: err}, folded, ctx.Err()
	}
	return UsageView{Executions: held.Used, Concurrent: held.Running, Peak: held.Peak, Exact: true, AsOf: now}, folded, nil
}

// checkWorkspace refuses what cannot be a workspace.
func checkWorkspace(workspace string) error {
	if schemas.ValidID(workspace) {
		return nil
	}
	return &usage.InvalidArgument{Field: "workspace_id", Detail: idRule}
}

// unread says what could not be done. What is no answer in itself is a service that is
// away: the reads of this room fail in no other way.
func unread(step string, err error) error {
	var wrong *usage.InvalidArgument
	if errors.As(err, &wrong) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", step, err)
	}
	for _, known := range []error{
		subscriptions.ErrNotEntitled, subscriptions.ErrNoDefaultPlan, subscriptions.ErrPeriodNotStarted, subscriptions.ErrUnknownWorkspace,
		enforcement.ErrUnavailable, enforcement.ErrStale, usage.ErrUnavailable,
	} {
		if errors.Is(err, known) {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return fmt.Errorf("%s: %w: %w", step, enforcement.ErrUnavailable, err)
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
