package api

import (
	"time"

	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
)

// quotasOfDecision are those that an allowed execution took from: the period's
// executions, and the slots.
func quotasOfDecision(d schemas.DecisionMade, now time.Time) []problems.RateLimit {
	var quotas []problems.RateLimit
	if d.LimitValue != nil && d.Remaining != nil {
		q := problems.RateLimit{Name: schemas.LimitExecutions, Limit: *d.LimitValue, Left: *d.Remaining}
		if d.ResetsAt != nil {
			q.ResetIn = d.ResetsAt.Sub(now)
		}
		quotas = append(quotas, q)
	}
	if d.ConcurrentLimit != nil {
		quotas = append(quotas, problems.RateLimit{
			Name: schemas.LimitConcurrentExecutions, Limit: *d.ConcurrentLimit, Left: *d.ConcurrentLimit - d.Concurrent, AtOnce: true,
		})
	}
	return quotas
}

// quotaOfBalance is the feature that was consumed or released.
func quotaOfBalance(feature string, b usage.Balance, now time.Time) problems.RateLimit {
	n, bounded := b.Limit.Value()
	if !bounded {
		return problems.RateLimit{}
	}
	q := problems.RateLimit{Name: feature, Limit: n, Left: n - b.Used}
	if b.ResetsAt != nil {
		q.ResetIn = b.ResetsAt.Sub(now)
	}
	return q
}
