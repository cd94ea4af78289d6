package projects

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/enforcement/usage"
)

// problems is where each type of problem is explained.
const problems = "https://github.com/headroomhq/headroom/blob/main/docs/problems.md#"

// problem is why a request was refused, as RFC 9457 has it. The types and members are
// those of Headroom's own API.
type problem struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Status      int    `json:"status"`
	Detail      string `json:"detail"`
	Code        int    `json:"code,omitempty"`
	Name        string `json:"error,omitempty"`
	Limit       string `json:"limit,omitempty"`
	LimitValue  *int64 `json:"limit_value,omitempty"`
	Used        *int64 `json:"used,omitempty"`
	Remaining   *int64 `json:"remaining,omitempty"`
	UpgradeHint string `json:"upgrade_hint,omitempty"`

	// Offer is a plan that would have room, nil if none has.
	Offer *offer `json:"-"`
	// Locked is the project that is locked, empty for any other problem.
	Locked  string `json:"-"`
	refusal *refusal
}

// refusal is what is known of a limit that refused.
type refusal struct {
	plan, feature          string
	used, limit, requested int64
	// needed is how much a plan would have to allow.
	needed int64
}

// problemOf turns an error into what a customer may know of it.
func problemOf(err error) problem {
	if r := refusalOf(err); r != nil {
		return r.problem()
	}
	if r := lockedOf(err); r != nil {
		return *r
	}
	var input *wrong
	var argument *usage.InvalidArgument
	var taken *conflict
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &input):
		return simple(http.StatusUnprocessableEntity, problems+"invalid-request", "Request is wrong", input.Error())
	case errors.As(err, &argument):
		return simple(http.StatusUnprocessableEntity, problems+"invalid-request", "Request is wrong", argument.Error())
	case errors.As(err, &taken):
		return simple(http.StatusConflict, "about:blank", "Conflict", taken.Error())
	case errors.Is(err, errNotFound):
		return simple(http.StatusNotFound, "about:blank", "Not Found", err.Error())
	case errors.As(err, &large):
		return simple(http.StatusRequestEntityTooLarge, problems+"body-too-large", "Body is too large",
			fmt.Sprintf("the form has more than %d bytes", large.Limit))
	case errors.Is(err, errUnknown), errors.As(err, new(*guard.OutcomeUnknown)):
		return simple(http.StatusServiceUnavailable, problems+"unavailable", "Unavailable",
			"whether it was done is not known: look before doing it again")
	case away(err):
		return simple(http.StatusServiceUnavailable, problems+"unavailable", "Unavailable",
			"nothing was done, because it could not be decided at the moment: try again")
	default:
		return simple(http.StatusInternalServerError, problems+"internal-error", "Internal error", "something went wrong on our side")
	}
}

func simple(status int, kind, title, detail string) problem {
	return problem{Type: kind, Title: title, Status: status, Detail: detail}
}

// away is whatever kept the question from being decided. Nobody gets more for that.
func away(err error) bool {
	return errors.Is(err, usage.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*pgconn.ConnectError)) ||
		errors.As(err, new(*guard.ProviderUnavailable)) || errors.As(err, new(*guard.LockTimeout)) ||
		errors.As(err, new(*guard.LockUnavailable))
}

// refusalOf is a limit that has no room; usage and guard each have an error for it.
func refusalOf(err error) *refusal {
	var quota *usage.QuotaExceeded
	var exceeded *guard.EntitlementLimitExceeded
	switch {
	case errors.As(err, &quota):
		return &refusal{quota.PlanKey, quota.Feature, quota.Used, quota.Limit, quota.Requested, quota.Used + quota.Requested}
	case errors.As(err, &exceeded):
		return &refusal{
			exceeded.PlanKey, exceeded.Privilege, exceeded.Current, exceeded.Limit, exceeded.Requested,
			exceeded.Current + exceeded.Requested,
		}
	default:
		return nil
	}
}

func (r *refusal) problem() problem {
	left := max(r.limit-r.used, 0)
	p := problem{
		Type: problems + "quota-exceeded", Title: "Quota exceeded", Name: "QuotaExceeded", Status: http.StatusTooManyRequests,
		Detail: fmt.Sprintf("Plan %s allows %s: %s in use, %s more asked for.",
			r.plan, amountOf(r.feature, r.limit), number(r.feature, r.used), number(r.feature, r.requested)),
		Limit: r.feature, LimitValue: &r.limit, Used: &r.used, Remaining: &left, refusal: r,
	}
	if r.feature == featureStorage {
		p.Type, p.Title = problems+"plan-storage-limit-reached", "Storage limit reached"
		p.Code, p.Name = 9007, "PlanStorageLimitReached"
	}
	return p
}

// lockedOf is a project beyond the limit, or a feature that the plan does not have at all.
func lockedOf(err error) *problem {
	var locked *usage.ResourceLocked
	var policy *usage.PolicyViolation
	var lacking *guard.NotEntitled
	switch {
	case errors.As(err, &locked):
		return &problem{
			Type: problems + "resource-locked", Title: "Resource is locked", Name: "ResourceLocked", Status: http.StatusLocked,
			Detail: fmt.Sprintf("Plan %s allows %s and there are %s. This one is beyond that and locked; it is kept as it is.",
				locked.PlanKey, amountOf(locked.Feature, locked.Limit), number(locked.Feature, locked.Used)),
			Limit: locked.Feature, LimitValue: &locked.Limit, Used: &locked.Used, Remaining: new(int64), Locked: locked.ResourceID,
			refusal: &refusal{plan: locked.PlanKey, used: locked.Used, limit: locked.Limit, needed: locked.Used},
		}
	case errors.As(err, &policy):
		return lackingProblem(policy.PlanKey, policy.Feature)
	case errors.As(err, &lacking):
		return lackingProblem(lacking.PlanKey, lacking.Privilege)
	default:
		return nil
	}
}

func lackingProblem(plan, feature string) *problem {
	return &problem{
		Type: problems + "policy-violation", Title: "Not part of the plan", Name: "PolicyViolation",
		Status: http.StatusUnprocessableEntity, Limit: feature,
		Detail:  fmt.Sprintf("Plan %s has no %s.", plan, nameOf(feature)),
		refusal: &refusal{plan: plan, needed: 1},
	}
}

// hint is what would help, in a sentence.
func (p problem) hint() string {
	upgrade := "no larger plan has room"
	if p.Offer != nil {
		upgrade = fmt.Sprintf("upgrade to plan %s, which allows %s", p.Offer.Key, p.Offer.Allows)
	}
	if p.Locked == "" {
		return upgrade
	}
	return fmt.Sprintf("%s; delete %d others; or keep this one instead of another", upgrade, p.refusal.used-p.refusal.limit)
}
