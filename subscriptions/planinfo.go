package subscriptions

import (
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// Snapshot is what a period was opened with: the plan's terms, overrides
// applied. A later revision of the plan does not change it.
type Snapshot struct {
	PlanKey      string `json:"plan_key"`
	PlanRevision int64  `json:"plan_revision"`
	// QuotaInterval is how long a quota lasts inside a longer billing period: "month",
	// or empty for as long as the period.
	QuotaInterval string                   `json:"quota_interval,omitempty"`
	Limits        schemas.Limits           `json:"limits"`
	Features      map[string]schemas.Limit `json:"features"`
	// Kinds are the kinds of those features that are not FeatureStock, and of those
	// that are known not to be included.
	Kinds map[string]FeatureKind `json:"kinds,omitempty"`
	// Overrides are the values above that are not the plan's, by field.
	Overrides []Overridden `json:"overrides,omitempty"`
}

// Period is a half-open span of time [Start, End) in UTC.
type Period struct {
	Start, End time.Time
}

// Contains reports whether the instant lies in the period.
func (p Period) Contains(at time.Time) bool {
	return !at.Before(p.Start) && at.Before(p.End)
}

// PlanInfo is what a decision is measured against: the terms a workspace is on
// at one moment, and how that is known.
type PlanInfo struct {
	WorkspaceID string
	// Revision rises with anything that is written for the workspace; 0 is
	// a workspace the database has never seen. On the default plan a new catalog
	// changes the snapshot, and with it the snapshot's plan revision, alone.
	Revision int64
	// SubscriptionID is the period row, empty on the default plan.
	SubscriptionID string
	// UsageEpoch names the quota counter: periods that share it share the quota.
	UsageEpoch string
	Period     Period
	Snapshot   Snapshot
	// Status is the subscription's status, "none" without one.
	Status string
	// ValidUntil is when the reading must not be served any more although its period
	// goes on; zero is never.
	ValidUntil time.Time
	// ReadAt is when the database was read. Exact says that this is no longer ago
	// than the cache allows: always of what Store reads, and of what Cache hands
	// out unless the database is away.
	ReadAt time.Time
	Exact  bool
}

// overriddenAt leaves out the overrides that have expired by then, and holds until
// the next one does.
func (p PlanInfo) overriddenAt(at time.Time) PlanInfo {
	p.Snapshot = p.Snapshot.at(at)
	if next := p.Snapshot.validUntil(); !next.IsZero() && next.Before(p.until()) {
		p.ValidUntil = next
	}
	return p
}

// until is when the reading ends to hold.
func (p PlanInfo) until() time.Time {
	if !p.ValidUntil.IsZero() && p.ValidUntil.Before(p.Period.End) {
		return p.ValidUntil
	}
	return p.Period.End
}

// holds reports whether the reading may be served for the instant.
func (p PlanInfo) holds(at time.Time) bool {
	return !at.Before(p.Period.Start) && at.Before(p.until())
}

// newer reports whether p is certain to be read from a later state than q. Plan
// revisions tell that of one subscription, or twice the default plan, only: when
// a subscription ends by itself, the default plan that follows may be older.
func (p PlanInfo) newer(q PlanInfo) bool {
	if p.Revision != q.Revision {
		return p.Revision > q.Revision
	}
	return p.SubscriptionID == q.SubscriptionID && p.Snapshot.PlanRevision > q.Snapshot.PlanRevision
}
