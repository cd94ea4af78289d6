package subscriptions

import (
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// Snapshot is what a period was opened with: the plan's terms, overrides
// applied. A later revision of the plan does not change it.
type Snapshot struct {
	PlanKey      string                   `json:"plan_key"`
	PlanRevision int64                    `json:"plan_revision"`
	Limits       schemas.Limits           `json:"limits"`
	Features     map[string]schemas.Limit `json:"features"`
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
	// Revision rises with anything that changes this value for the workspace;
	// 0 is a workspace the database has never seen. Together with the
	// snapshot's plan revision it orders two readings (see Newer).
	Revision int64
	// SubscriptionID is the period row, empty on the default plan.
	SubscriptionID string
	// UsageEpoch names the quota counter: periods that share it share the quota.
	UsageEpoch string
	Period     Period
	Snapshot   Snapshot
	// Status is the subscription's status, "none" without one.
	Status string
	// ReadAt is when the database was read; Exact is false once the value has
	// outlived its time in the cache because the database was away.
	ReadAt time.Time
	Exact  bool
}

// Newer reports whether p was read from a later state than q.
func (p PlanInfo) Newer(q PlanInfo) bool {
	if p.Revision != q.Revision {
		return p.Revision > q.Revision
	}
	return p.Snapshot.PlanRevision > q.Snapshot.PlanRevision
}
