package enforcement

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// longestLease keeps a plan's duration from overflowing a clock.
const longestLease = 10 * 365 * 24 * time.Hour

// snapshot is what a decision is measured against. Redis keeps it by its digest,
// once for all executions that it applies to, so that a repeated decision and
// the checks of a running execution use the very terms of the admission.
type snapshot struct {
	PlanKey        string         `json:"plan_key"`
	PlanRevision   int64          `json:"plan_revision"`
	SubscriptionID string         `json:"subscription_id,omitempty"`
	UsageEpoch     string         `json:"usage_epoch"`
	PeriodStart    time.Time      `json:"period_start"`
	PeriodEnd      time.Time      `json:"period_end"`
	Limits         schemas.Limits `json:"limits"`
	LeaseMS        int64          `json:"lease_ms"`
}

// terms is a plan reading, ready for the scripts.
type terms struct {
	snapshot
	revision int64
	readAt   time.Time
	exact    bool
	digest   string // eight bytes
	packed   string
	// What every admission on these terms passes, as the script takes it.
	head []any
}

func (e *Enforcer) termsOf(plan subscriptions.PlanInfo) (*terms, error) {
	t := &terms{
		snapshot: snapshot{
			PlanKey: plan.Snapshot.PlanKey, PlanRevision: plan.Snapshot.PlanRevision,
			SubscriptionID: plan.SubscriptionID, UsageEpoch: plan.UsageEpoch,
			PeriodStart: plan.Period.Start.UTC(), PeriodEnd: plan.Period.End.UTC(),
			Limits: plan.Snapshot.Limits, LeaseMS: e.lease(plan.Snapshot.Limits).Milliseconds(),
		},
		revision: plan.Revision, readAt: plan.ReadAt, exact: plan.Exact,
	}
	var err error
	if t.digest, t.packed, err = t.snapshot.pack(); err != nil {
		return nil, fmt.Errorf("encode snapshot of workspace %s: %w", plan.WorkspaceID, err)
	}
	limits := t.Limits
	t.head = []any{
		e.window, milliseconds(t.revision), milliseconds(t.fence()), t.UsageEpoch,
		milliseconds(t.PeriodStart.UnixMilli()), milliseconds(t.PeriodEnd.UnixMilli()), t.digest,
		argument(limits.MaxExecutions), argument(limits.MaxConcurrentExecutions),
		argument(limits.MaxExecutionsPerMinute), milliseconds(t.LeaseMS),
	}
	return t, nil
}

// pack is the snapshot as Redis keeps it, and the eight bytes that it goes by.
func (s snapshot) pack() (digest, packed string, err error) {
	body, err := json.Marshal(s)
	if err != nil {
		return "", "", err
	}
	sum := sha256.Sum256(body)
	return string(sum[:8]), string(body), nil
}

// fence is what orders two readings of one workspace revision. Only the default
// plan changes beneath a workspace whose own revision stays; a subscription's
// plan has another row of numbers, and whichever comes after it is newer.
func (t *terms) fence() int64 {
	if t.SubscriptionID != "" {
		return 0
	}
	return t.PlanRevision
}

// argument is how a script takes a limit: its number, or nothing for none.
func argument(l schemas.Limit) string {
	n, bounded := l.Value()
	if !bounded {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// lease is the plan's longest duration and the grace, or the default where the
// plan has no longest duration.
func (e *Enforcer) lease(limits schemas.Limits) time.Duration {
	minutes, bounded := limits.MaxExecutionDurationMinutes.Value()
	if !bounded {
		return e.leaseDefault
	}
	if minutes > int64(longestLease/time.Minute) {
		return longestLease
	}
	// A lease of no length would hold no slot.
	return max(time.Duration(minutes)*time.Minute+e.leaseGrace, time.Second)
}

// readSnapshots reads the digests and snapshots that end a reply.
func readSnapshots(tail []any) (map[string]*terms, error) {
	if len(tail) == 0 {
		return nil, nil
	}
	found := make(map[string]*terms, len(tail)/2)
	for i := 0; i+1 < len(tail); i += 2 {
		t := &terms{exact: true, digest: text(tail[i])}
		if err := json.Unmarshal([]byte(text(tail[i+1])), &t.snapshot); err != nil {
			return nil, fmt.Errorf("decode snapshot: %w", err)
		}
		found[t.digest] = t
	}
	return found, nil
}
