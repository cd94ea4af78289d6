package guard

import (
	"context"

	"github.com/headroomhq/headroom/schemas"
)

// RequireWithin checks whether the request has room beside a usage that the caller
// counted. It fails like Guard, but it takes no lock and calls nothing.
//
// It is a pure check, and alone it does not stop concurrent requests from exceeding the
// limit: two that counted 4 of 5 at the same time both pass, and then there are 6. Use
// Guard around what adds to the usage, and RequireWithin for what only shows it.
func (c *Client[Tx]) RequireWithin(ctx context.Context, r Request, usage Usage) (Details, error) {
	if err := r.check(); err != nil {
		return Details{Request: r}, err
	}
	resolution, err := c.resolve(ctx, r)
	if err != nil {
		return Details{Request: r, Resolution: resolution}, err
	}
	return within(r, resolution, usage)
}

// within decides. It is a pure function.
func within(r Request, resolution Resolution, usage Usage) (Details, error) {
	details := Details{Request: r, Resolution: resolution, Usage: usage}
	if err := usage.check(); err != nil {
		return details, err
	}
	caps := []limited{{ScopeOrganization, &resolution.Limit, &usage.Total}}
	if resolution.PerSubject != nil {
		caps = append(caps, limited{ScopeSubject, resolution.PerSubject, usage.Subject})
	}
	if resolution.PerResource != nil {
		caps = append(caps, limited{ScopeResource, resolution.PerResource, usage.Resource})
	}
	details.Allowed, details.Reason = true, ReasonWithin
	if resolution.Limit.IsUnlimited() {
		details.Reason = ReasonUnlimited
	}
	var exceeded *EntitlementLimitExceeded
	for _, c := range caps {
		if c.used == nil {
			return Details{Request: r, Resolution: resolution, Usage: usage},
				&InvalidUsage{Field: string(c.scope), Detail: "is missing, and the privilege has a cap for it"}
		}
		if exceeded == nil && !c.fits(r.Requested) {
			exceeded = c.exceeded(r, resolution)
			details.Allowed, details.Reason = false, ReasonExceeded
		}
	}
	if limit, bounded := resolution.Limit.Value(); bounded {
		left := max(limit-usage.Total, 0)
		if details.Allowed {
			left -= r.Requested
		}
		details.Remaining = &left
	}
	if exceeded != nil {
		exceeded.Details = details
		return details, exceeded
	}
	return details, nil
}

// limited is a usage and its limit.
type limited struct {
	scope Scope
	limit *schemas.Limit
	used  *int64
}

// fits reports whether the limit has room. Neither number is negative, so that the
// difference cannot overflow, as a sum could.
func (l limited) fits(requested int64) bool {
	limit, bounded := l.limit.Value()
	return !bounded || requested <= limit-*l.used
}

func (l limited) exceeded(r Request, resolution Resolution) *EntitlementLimitExceeded {
	limit, _ := l.limit.Value()
	return &EntitlementLimitExceeded{
		Organization: r.Organization, Privilege: r.Privilege, Scope: l.scope,
		Limit: limit, Current: *l.used, Requested: r.Requested, Remaining: max(limit-*l.used, 0),
		PlanKey: resolution.PlanKey, ResetsAt: resolution.ResetsAt,
	}
}

// measurable is the fault of a request that lacks whom the privilege has a cap for.
func measurable(r Request, resolution Resolution) error {
	const detail = "is empty, and the privilege has a cap for each"
	if resolution.PerSubject != nil && r.Subject == "" {
		return &InvalidArgument{Field: "subject", Detail: detail}
	}
	if resolution.PerResource != nil && r.Resource == "" {
		return &InvalidArgument{Field: "resource", Detail: detail}
	}
	return nil
}
