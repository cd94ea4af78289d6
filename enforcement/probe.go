package enforcement

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// Probe is what Admit would decide now of an execution with a payload of that many
// bytes, for each payload by itself. It takes nothing and is on nobody's record: the
// answers name no execution and have no id. Used and Remaining of one that would be
// allowed are those before it. One round trip to Redis, and one to the usage source
// where Redis does not know the period.
//
// The error wraps ErrUnavailable, or ErrStale for a plan whose period does not contain
// Redis's now.
func (e *Enforcer) Probe(ctx context.Context, plan subscriptions.PlanInfo, payloads []int64) ([]schemas.DecisionMade, error) {
	t, err := e.planOf(plan)
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	s, err := e.standing(ctx, plan.WorkspaceID, t.UsageEpoch)
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	if s.now.Before(t.PeriodStart) || !s.now.Before(t.PeriodEnd) {
		return nil, fmt.Errorf("probe for workspace %s: %w", plan.WorkspaceID, ErrStale)
	}
	answers := make([]schemas.DecisionMade, len(payloads))
	for i, bytes := range payloads {
		r := Request{WorkspaceID: plan.WorkspaceID, PayloadBytes: bytes}
		d := decide(r, identity{}, s.judge(t, payloadExceeds(t.Limits, bytes)), t)
		d.DecisionID, d.LeaseExpiresAt = "", nil
		answers[i] = d
	}
	return answers, nil
}

// standing is all that an admission is judged by, beside its plan.
type standing struct {
	now        time.Time
	used, peak int64
	live       int64
	ahead      time.Duration // of the arrival time of the start rate
	first      time.Time     // the soonest end of a live lease, zero for none
}

// standing reads Redis, and of what Redis has not opened yet the usage source, as
// opening it would.
func (e *Enforcer) standing(ctx context.Context, workspace, epoch string) (standing, error) {
	c, err := e.readUsage(ctx, workspace, epoch)
	if err != nil {
		return standing{}, err
	}
	s := standing{
		now: time.UnixMilli(integer(c.reply[1])).UTC(), used: integer(c.reply[2]), peak: integer(c.reply[3]), live: integer(c.reply[4]),
		ahead: time.Duration(integer(c.reply[6])) * time.Microsecond,
	}
	if first := integer(c.reply[7]); first > 0 {
		s.first = time.UnixMilli(first).UTC()
	}
	periodKnown, leasesKnown := integer(c.reply[0]) == 1, integer(c.reply[5]) == 1
	if periodKnown && leasesKnown {
		return s, nil
	}
	known, err := e.usage.Usage(ctx, workspace, epoch)
	if err != nil {
		return standing{}, fmt.Errorf("read usage of workspace %s: %w: %w", workspace, ErrUnavailable, err)
	}
	if !periodKnown {
		s.used, s.peak = known.Used, known.Peak
	}
	if !leasesKnown {
		s.live, s.first = int64(len(known.Leases)), time.Time{}
		for _, l := range known.Leases {
			if s.first.IsZero() || l.ExpiresAt.Before(s.first) {
				s.first = l.ExpiresAt
			}
		}
	}
	s.peak = max(s.peak, s.live)
	return s, nil
}

// judge is the script's: the reasons against one more execution, and when to ask again.
func (s standing) judge(t *terms, oversized bool) record {
	rec := record{status: 'A', used: s.used, concurrent: s.live, peak: s.peak, at: s.now}
	against := func(reason int, retry time.Duration) {
		rec.status, rec.reasons, rec.retry = 'D', rec.reasons|reason, max(rec.retry, retry)
	}
	if n, bounded := t.Limits.MaxExecutions.Value(); bounded && s.used >= n {
		against(reasonQuota, t.PeriodEnd.Sub(s.now))
	}
	if n, bounded := t.Limits.MaxConcurrentExecutions.Value(); bounded && s.live >= n {
		against(reasonConcurrency, s.untilSlot())
	}
	if rate, bounded := t.Limits.MaxExecutionsPerMinute.Value(); bounded {
		if wait, late := s.untilStart(rate); late {
			against(reasonRate, wait)
		}
	}
	if oversized {
		against(reasonPayload, 0)
		rec.retry = 0
	}
	return rec
}

func (s standing) untilSlot() time.Duration {
	if s.first.IsZero() {
		return 0
	}
	return max(s.first.Sub(s.now), 0)
}

// untilStart is how long until the rate lets one more start; late is false where that is at once.
func (s standing) untilStart(rate int64) (wait time.Duration, late bool) {
	if rate == 0 {
		return 0, true
	}
	micros := float64(s.ahead/time.Microsecond) + float64(time.Minute/time.Microsecond)/float64(rate) - float64(time.Minute/time.Microsecond)
	return time.Duration(math.Ceil(micros/1000)) * time.Millisecond, micros >= 1
}
