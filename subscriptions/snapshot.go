package subscriptions

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/headroomhq/headroom/schemas"
)

// snapshotOf are the terms of a plan's revision.
func snapshotOf(plan PlanRevision) Snapshot {
	return Snapshot{
		PlanKey:       plan.Key,
		PlanRevision:  plan.Revision,
		QuotaInterval: plan.QuotaInterval,
		Limits:        plan.Limits,
		Features:      plan.Features,
		Kinds:         plan.Kinds,
	}
}

// decodeSnapshot reads what a row holds. It refuses a snapshot in which a limit
// or the plan is missing: the zero Limit would deny everything and look as if
// somebody had meant it.
func decodeSnapshot(body []byte) (Snapshot, error) {
	var stated struct {
		Limits map[string]json.RawMessage `json:"limits"`
	}
	if err := json.Unmarshal(body, &stated); err != nil {
		return Snapshot{}, fmt.Errorf("decode snapshot: %w", err)
	}
	for _, name := range schemas.LimitNames {
		if _, ok := stated.Limits[name]; !ok {
			return Snapshot{}, fmt.Errorf("decode snapshot: limit %s is missing", name)
		}
	}
	var snapshot Snapshot
	if err := json.Unmarshal(body, &snapshot); err != nil {
		return Snapshot{}, fmt.Errorf("decode snapshot: %w", err)
	}
	if snapshot.PlanKey == "" || snapshot.PlanRevision <= 0 {
		return Snapshot{}, errors.New("decode snapshot: plan_key or plan_revision is missing")
	}
	for feature, kind := range snapshot.Kinds {
		if !kind.Known() {
			return Snapshot{}, fmt.Errorf("decode snapshot: feature %s is of kind %q", feature, kind)
		}
	}
	return snapshot, snapshot.checkOverrides()
}
