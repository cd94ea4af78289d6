package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
)

// quota is one limit as the RateLimit fields tell of it (draft-ietf-httpapi-ratelimit-headers-10).
type quota struct {
	name            string
	limit, left     int64
	window, resetIn time.Duration
	// atOnce is a limit on how much there is at one moment, not in a time.
	atOnce bool
}

// maxFieldInteger is the largest integer that a structured field may hold (RFC 9651).
const maxFieldInteger = 999_999_999_999_999

// setRateLimit tells of the quotas: the policy of each, and what is left of it. One
// without a name or too large to be written is left out.
func setRateLimit(h http.Header, quotas ...quota) {
	var policies, states []string
	for _, q := range quotas {
		if q.name == "" || q.limit < 0 || q.limit > maxFieldInteger {
			continue
		}
		policy, state := strconv.Quote(q.name)+";q="+whole(q.limit), strconv.Quote(q.name)+";r="+whole(min(max(q.left, 0), maxFieldInteger))
		if q.atOnce {
			policy += `;qu="concurrent-requests"`
		}
		if q.window > 0 {
			policy += ";w=" + whole(seconds(q.window))
		}
		if q.resetIn > 0 {
			state += ";t=" + whole(seconds(q.resetIn))
		}
		policies, states = append(policies, policy), append(states, state)
	}
	if len(policies) > 0 {
		h.Set("RateLimit-Policy", strings.Join(policies, ", "))
		h.Set("RateLimit", strings.Join(states, ", "))
	}
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

// quota is the limit that refused.
func (p *Problem) quota(now time.Time) quota {
	if p.Limit == "" || p.LimitValue == nil {
		return quota{}
	}
	q := quota{name: p.Limit, limit: *p.LimitValue, atOnce: p.Code == enforcement.CodeConcurrency}
	if p.Remaining != nil {
		q.left = *p.Remaining
	}
	if p.Code == enforcement.CodeRate {
		q.window = time.Minute
	}
	if p.RetryAfterMS != nil || p.ResetsAt != nil && !q.atOnce && q.window == 0 {
		q.resetIn = p.retryAfter(now)
	}
	return q
}

// quotasOfDecision are those that an allowed execution took from: the period's
// executions, and the slots.
func quotasOfDecision(d schemas.DecisionMade, now time.Time) []quota {
	var quotas []quota
	if d.LimitValue != nil && d.Remaining != nil {
		q := quota{name: schemas.LimitExecutions, limit: *d.LimitValue, left: *d.Remaining}
		if d.ResetsAt != nil {
			q.resetIn = d.ResetsAt.Sub(now)
		}
		quotas = append(quotas, q)
	}
	if d.ConcurrentLimit != nil {
		quotas = append(quotas, quota{
			name: schemas.LimitConcurrentExecutions, limit: *d.ConcurrentLimit, left: *d.ConcurrentLimit - d.Concurrent, atOnce: true,
		})
	}
	return quotas
}

// quotaOfBalance is the feature that was consumed or released.
func quotaOfBalance(feature string, b usage.Balance, now time.Time) quota {
	n, bounded := b.Limit.Value()
	if !bounded {
		return quota{}
	}
	q := quota{name: feature, limit: n, left: n - b.Used}
	if b.ResetsAt != nil {
		q.resetIn = b.ResetsAt.Sub(now)
	}
	return q
}
