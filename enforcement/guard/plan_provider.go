package guard

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// Plans is a plan cache: subscriptions.Cache, or client.Plans, which is told of changes.
type Plans interface {
	Lookup(ctx context.Context, workspace string, at time.Time) (subscriptions.PlanInfo, error)
}

// Catalog lists the features of the catalog in force. subscriptions.Store is one.
type Catalog interface {
	Features(ctx context.Context) (map[string]subscriptions.FeatureKind, error)
}

// Caps are the features whose limits cap the parts of a privilege, empty for none. For
// example seats of 50 with {Subject: "seats_per_team"}.
type Caps struct{ Subject, Resource string }

// PlanOptions make a PlanProvider. Plans and Catalog are required.
type PlanOptions struct {
	Plans   Plans
	Catalog Catalog
	// Caps are by privilege.
	Caps map[string]Caps
	// CatalogTTL is how long the catalog's features are remembered: 10 seconds. They are
	// read only for what a plan lacks, to tell a wrong name from a small plan.
	CatalogTTL time.Duration
	// Now is the clock, the machine's by default.
	Now func() time.Time
}

// PlanProvider resolves privileges from Headroom's plans. A privilege is a feature of the
// catalog, schemas.FeatureStorage in bytes, or a limit of the plan by its name, such as
// max_storage_mb, in that limit's unit.
//
// The limit is that of the running period: an override, else the period's snapshot,
// else the default plan's. Where a plan does not have a feature, the answer is *NotEntitled,
// and *UnknownPrivilege where no plan of the catalog has it.
type PlanProvider struct {
	options PlanOptions
	kinds   *knownKinds
}

// NewPlanProvider checks the options.
func NewPlanProvider(o PlanOptions) (*PlanProvider, error) {
	if o.Plans == nil || o.Catalog == nil {
		return nil, errors.New("make a plan provider: Plans and Catalog are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.CatalogTTL <= 0 {
		o.CatalogTTL = defaultCatalogTTL
	}
	return &PlanProvider{options: o, kinds: newKnownKinds(o)}, nil
}

// Resolve is that of Provider. With the plan in the cache it touches no server.
func (p *PlanProvider) Resolve(ctx context.Context, organization, privilege string) (Resolution, error) {
	info, err := p.options.Plans.Lookup(ctx, organization, p.options.Now())
	switch {
	case errors.Is(err, subscriptions.ErrNotEntitled), errors.Is(err, subscriptions.ErrNoDefaultPlan):
		return Resolution{}, &NotEntitled{Organization: organization, Privilege: privilege, Cause: err}
	case err != nil:
		return Resolution{}, err
	}
	resolution, found := resolved(info, privilege)
	if !found {
		return p.lacking(ctx, info, privilege)
	}
	caps := p.options.Caps[privilege]
	if resolution.PerSubject, err = capOf(info, privilege, caps.Subject); err != nil {
		return Resolution{}, err
	}
	resolution.PerResource, err = capOf(info, privilege, caps.Resource)
	return resolution, err
}

// lacking is the answer for what the workspace's plan does not have.
func (p *PlanProvider) lacking(ctx context.Context, info subscriptions.PlanInfo, privilege string) (Resolution, error) {
	kinds, err := p.kinds.get(ctx)
	kind, known := kinds[privilege]
	switch {
	case err == nil && !known:
		return Resolution{}, &UnknownPrivilege{Privilege: privilege}
	case kind == subscriptions.FeatureBoolean:
		// Wrong use is told as such, and not as something that a larger plan would mend.
		return Resolution{Kind: KindBoolean, PlanKey: info.Snapshot.PlanKey}, nil
	}
	// Without the catalog one thing is certain as well: the plan does not grant it.
	return Resolution{}, &NotEntitled{
		Organization: info.WorkspaceID, Privilege: privilege, PlanKey: info.Snapshot.PlanKey, Cause: err,
	}
}

// resolved reads a privilege from a plan; false is a plan without it.
func resolved(info subscriptions.PlanInfo, privilege string) (Resolution, bool) {
	limit, field, kind := measure(info.Snapshot, privilege)
	if limit == nil {
		return Resolution{}, false
	}
	r := Resolution{
		Kind: KindLimit, Limit: *limit, Source: sourceOf(info, field),
		AsOf: info.ReadAt, Stale: !info.Exact, PeriodStart: info.Period.Start, PeriodEnd: info.Period.End,
		PlanKey: info.Snapshot.PlanKey, PlanRevision: info.Snapshot.PlanRevision, SubscriptionID: info.SubscriptionID,
		Metadata: map[string]string{"workspace_revision": strconv.FormatInt(info.Revision, 10)},
	}
	switch kind {
	case subscriptions.FeatureBoolean:
		r.Kind, r.Limit = KindBoolean, schemas.Limit{}
	case subscriptions.FeatureFlow:
		r.ResetsAt = &r.PeriodEnd
	}
	return r, true
}

// measure is a privilege's limit, the field that an override of it has, and its kind.
func measure(s subscriptions.Snapshot, privilege string) (*schemas.Limit, string, subscriptions.FeatureKind) {
	if privilege == schemas.FeatureStorage {
		inBytes := s.Limits.StorageBytes()
		return &inBytes, schemas.LimitStorageMB, subscriptions.FeatureStock
	}
	if limit := s.Limits.Named(privilege); limit != nil {
		if privilege == schemas.LimitExecutions {
			return limit, privilege, subscriptions.FeatureFlow
		}
		return limit, privilege, subscriptions.FeatureStock
	}
	limit, included := s.Features[privilege]
	if !included {
		return nil, "", ""
	}
	return &limit, "features." + privilege, s.KindOf(privilege)
}

func sourceOf(info subscriptions.PlanInfo, field string) Source {
	switch {
	case info.Snapshot.IsOverridden(field):
		return SourceOverride
	case info.SubscriptionID == "":
		return SourceDefault
	}
	return SourcePlan
}

// capOf is the limit of the feature that caps a part of a privilege. A plan that has the
// privilege and not its cap grants nothing: no cap must not come of a gap.
func capOf(info subscriptions.PlanInfo, privilege, feature string) (*schemas.Limit, error) {
	if feature == "" {
		return nil, nil
	}
	limit, included := info.Snapshot.Features[feature]
	if !included {
		return nil, &NotEntitled{
			Organization: info.WorkspaceID, Privilege: privilege, PlanKey: info.Snapshot.PlanKey,
			Cause: errors.New("its plan lacks " + feature + ", which caps it"),
		}
	}
	return &limit, nil
}
