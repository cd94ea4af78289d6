package problems

import (
	"errors"
	"fmt"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/schemas"
)

// ofGuard tells what guard refuses as what usage refuses: a client need not know by
// which of the two an application counts.
func ofGuard(err error) *Problem {
	var (
		exceeded *guard.EntitlementLimitExceeded
		lacking  *guard.NotEntitled
		unknown  *guard.UnknownPrivilege
		kind     *guard.TypeMismatch
		wrong    *guard.InvalidArgument
	)
	switch {
	case errors.As(err, &exceeded):
		return ofExceeded(exceeded)
	case errors.As(err, &lacking):
		p := New(PolicyViolation, lacking.Error())
		p.Limit = lacking.Privilege
		if lacking.PlanKey != "" {
			p.UpgradeHint = fmt.Sprintf("move the workspace from plan %s to one that includes %s", lacking.PlanKey, lacking.Privilege)
		}
		return p
	case errors.As(err, &unknown):
		p := New(PolicyViolation, unknown.Error())
		p.Limit = unknown.Privilege
		return p
	case errors.As(err, &kind):
		p := New(PolicyViolation, kind.Error())
		p.Limit = kind.Privilege
		return p
	case errors.As(err, &wrong):
		return InvalidRequest(FieldFault{Field: wrong.Field, Detail: wrong.Detail})
	default:
		return ofLock(err)
	}
}

func ofExceeded(e *guard.EntitlementLimitExceeded) *Problem {
	slug := QuotaExceeded
	if e.Privilege == schemas.FeatureStorage || e.Privilege == schemas.LimitStorageMB {
		slug = Storage
	}
	p := New(slug, e.Error())
	p.Limit, p.LimitValue, p.Used, p.Remaining, p.ResetsAt = e.Privilege, &e.Limit, &e.Current, &e.Remaining, InUTC(e.ResetsAt)
	p.UpgradeHint = upgrade(e.PlanKey, e.Privilege)
	return p
}

// ofLock is what keeps a guard from deciding, and from knowing what it did.
func ofLock(err error) *Problem {
	var (
		provider *guard.ProviderUnavailable
		timeout  *guard.LockTimeout
		away     *guard.LockUnavailable
		lost     *guard.OutcomeUnknown
	)
	switch {
	case errors.As(err, &lost):
		// No 503: its Retry-After would have a client do it again.
		return New(Internal, "whether it was done is not known: look before doing it again")
	case errors.As(err, &provider), errors.As(err, &timeout), errors.As(err, &away):
		return New(Unavailable, "nothing was done, because it could not be decided at the moment: ask again")
	default:
		return nil
	}
}
