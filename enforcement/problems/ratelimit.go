package problems

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/headroomhq/headroom/enforcement"
)

// RateLimit is one limit as the RateLimit fields tell of it (draft-ietf-httpapi-ratelimit-headers-10).
type RateLimit struct {
	// Name is the limit's or the feature's; a quota without one is not told.
	Name string
	// Limit is how much is allowed and Left how much of it remains.
	Limit, Left int64
	// Window is the time that Limit is for, and ResetIn when Left is whole again; 0 says nothing.
	Window, ResetIn time.Duration
	// AtOnce is a limit on how much there is at one moment, not in a time.
	AtOnce bool
}

// maxFieldInteger is the largest integer that a structured field may hold (RFC 9651).
const maxFieldInteger = 999_999_999_999_999

// SetRateLimit tells of the quotas: the policy of each, and what is left of it. One
// without a name or too large to be written is left out.
func SetRateLimit(h http.Header, quotas ...RateLimit) {
	var policies, states []string
	for _, q := range quotas {
		if q.Name == "" || q.Limit < 0 || q.Limit > maxFieldInteger {
			continue
		}
		policy, state := strconv.Quote(q.Name)+";q="+whole(q.Limit), strconv.Quote(q.Name)+";r="+whole(min(max(q.Left, 0), maxFieldInteger))
		if q.AtOnce {
			policy += `;qu="concurrent-requests"`
		}
		if q.Window > 0 {
			policy += ";w=" + whole(Seconds(q.Window))
		}
		if q.ResetIn > 0 {
			state += ";t=" + whole(Seconds(q.ResetIn))
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
func (p *Problem) quota(now time.Time) RateLimit {
	if p.Limit == "" || p.LimitValue == nil {
		return RateLimit{}
	}
	q := RateLimit{Name: p.Limit, Limit: *p.LimitValue, AtOnce: p.Code == enforcement.CodeConcurrency}
	if p.Remaining != nil {
		q.Left = *p.Remaining
	}
	if p.Code == enforcement.CodeRate {
		q.Window = time.Minute
	}
	if p.RetryAfterMS != nil || p.ResetsAt != nil && !q.AtOnce && q.Window == 0 {
		q.ResetIn = p.RetryAfter(now)
	}
	return q
}
