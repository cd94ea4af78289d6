package projects

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/enforcement/usage"
)

// problem is why a request was refused: Headroom's problem details, told in the words
// of this application, and what its page needs beside them.
type problem struct {
	*problems.Problem

	// Offer is a plan that would have room, nil if none has.
	Offer *offer `json:"-"`
	// Locked is the project that is locked, empty for any other problem.
	Locked  string `json:"-"`
	refusal *refusal
}

// refusal is what is known of a limit that refused.
type refusal struct {
	plan string
	// surplus is how much there is beyond the limit.
	surplus int64
	// needed is how much a plan would have to allow.
	needed int64
}

// problemOf turns an error into what a customer may know of it.
func problemOf(err error) problem {
	var input *wrong
	var taken *conflict
	switch {
	case errors.As(err, &input):
		return problem{Problem: problems.New(problems.Invalid, input.Error())}
	case errors.As(err, &taken):
		return plain(http.StatusConflict, taken.Error())
	case errors.Is(err, errNotFound):
		return plain(http.StatusNotFound, err.Error())
	case errors.Is(err, errUnknown):
		return problem{Problem: problems.New(problems.Internal, "whether it was done is not known: look before doing it again")}
	}
	p := problem{Problem: problems.Of(err, "")}
	p.explain(err)
	return p
}

// plain is a problem of the application's own, which the status says all of.
func plain(status int, detail string) problem {
	return problem{Problem: &problems.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}}
}

// explain puts what a plan refused into the application's words. Usage and guard each
// have their errors for it.
func (p *problem) explain(err error) {
	var (
		quota    *usage.QuotaExceeded
		exceeded *guard.EntitlementLimitExceeded
		locked   *usage.ResourceLocked
		policy   *usage.PolicyViolation
		lacking  *guard.NotEntitled
	)
	switch {
	case errors.As(err, &quota):
		p.full(quota.PlanKey, quota.Requested)
	case errors.As(err, &exceeded):
		p.full(exceeded.PlanKey, exceeded.Requested)
	case errors.As(err, &locked):
		p.Locked = locked.ResourceID
		p.refusal = &refusal{plan: locked.PlanKey, surplus: locked.Used - locked.Limit, needed: locked.Used}
		p.Detail = fmt.Sprintf("Plan %s allows %s and there are %s. This one is beyond that and locked; it is kept as it is.",
			locked.PlanKey, amountOf(locked.Feature, locked.Limit), number(locked.Feature, locked.Used))
	case errors.As(err, &policy):
		p.lack(policy.PlanKey)
	case errors.As(err, &lacking):
		p.lack(lacking.PlanKey)
	}
}

func (p *problem) full(plan string, requested int64) {
	p.refusal = &refusal{plan: plan, needed: *p.Used + requested}
	p.Detail = fmt.Sprintf("Plan %s allows %s: %s in use, %s more asked for.",
		plan, amountOf(p.Limit, *p.LimitValue), number(p.Limit, *p.Used), number(p.Limit, requested))
}

func (p *problem) lack(plan string) {
	p.refusal = &refusal{plan: plan, needed: 1}
	p.Detail = fmt.Sprintf("Plan %s has no %s.", plan, nameOf(p.Limit))
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
	return fmt.Sprintf("%s; delete %d others; or keep this one instead of another", upgrade, p.refusal.surplus)
}
