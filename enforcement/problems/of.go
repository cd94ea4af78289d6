package problems

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// Of is how an error is told to a client: the refusals of usage, the errors of
// enforcement and subscriptions, a service that is away. Whatever it does not know is
// an internal-error, whose detail says nothing of the cause; the caller logs that with
// the instance. A *Problem stays itself. The instance fills in where there is none.
func Of(err error, instance string) *Problem {
	p := of(err)
	if p.Instance == "" {
		p.Instance = instance
	}
	return p
}

func of(err error) *Problem {
	var found *Problem
	if errors.As(err, &found) {
		once := *found
		return &once
	}
	if p := ofUsage(err); p != nil {
		return p.Because(err)
	}
	if p := ofGuard(err); p != nil {
		return p.Because(err)
	}
	if p := ofPlan(err); p != nil {
		return p.Because(err)
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return New(TooLarge, fmt.Sprintf("the body has more than %d bytes", large.Limit)).Because(err)
	case errors.Is(err, context.DeadlineExceeded):
		return New(Unavailable, "the answer took too long; whether something was done is not known: ask again, with the same Idempotency-Key").Because(err)
	case errors.Is(err, context.Canceled):
		return New(Unavailable, "the request was given up before it was answered").Because(err)
	case away(err):
		return New(Unavailable, "a service that is needed for this is away; ask again in a moment").Because(err)
	default:
		return New(Internal, "something went wrong; the log has the cause under this instance").Because(err)
	}
}

func ofUsage(err error) *Problem {
	var (
		wrong  *usage.InvalidArgument
		quota  *usage.QuotaExceeded
		policy *usage.PolicyViolation
		locked *usage.ResourceLocked
		reused *usage.KeyReused
	)
	switch {
	case errors.As(err, &wrong):
		return InvalidRequest(FieldFault{Field: wrong.Field, Detail: wrong.Detail})
	case errors.As(err, &quota):
		return ofQuota(quota)
	case errors.As(err, &policy):
		p := New(PolicyViolation, policy.Error())
		p.Limit = policy.Feature
		if !policy.Unknown && !policy.Uncounted {
			p.UpgradeHint = fmt.Sprintf("move the workspace from plan %s to one that includes %s", policy.PlanKey, policy.Feature)
		}
		return p
	case errors.As(err, &locked):
		p := New(ResourceLocked, locked.Error())
		p.Limit, p.LimitValue, p.Used, p.Remaining = locked.Feature, &locked.Limit, &locked.Used, new(int64)
		p.UpgradeHint = fmt.Sprintf("release %d of the other %s, keep this one instead of another, or move to a plan that allows %d",
			max(locked.Used-locked.Limit, 1), locked.Feature, locked.Used)
		return p
	case errors.As(err, &reused):
		return New(KeyReused, reused.Error())
	case errors.Is(err, usage.ErrUnavailable):
		return New(Unavailable, "usage cannot be decided at the moment: nothing was counted, ask again")
	default:
		return nil
	}
}

func ofQuota(quota *usage.QuotaExceeded) *Problem {
	slug := QuotaExceeded
	if quota.Feature == schemas.FeatureStorage {
		slug = Storage
	}
	p := New(slug, quota.Error())
	left := quota.Remaining()
	p.Limit, p.LimitValue, p.Used, p.Remaining, p.ResetsAt = quota.Feature, &quota.Limit, &quota.Used, &left, InUTC(quota.ResetsAt)
	p.UpgradeHint = upgrade(quota.PlanKey, quota.Feature)
	return p
}

func upgrade(plan, limit string) string {
	return fmt.Sprintf("move the workspace from plan %s to one that allows more of %s", plan, limit)
}

func ofPlan(err error) *Problem {
	switch {
	case errors.Is(err, subscriptions.ErrNotEntitled):
		return New(NotEntitled, "the workspace has no plan; assign it one")
	case errors.Is(err, subscriptions.ErrNoDefaultPlan):
		return New(Unavailable, "no catalog of plans was applied yet: headroom plans apply")
	case errors.Is(err, enforcement.ErrUnavailable), errors.Is(err, enforcement.ErrStale),
		errors.Is(err, subscriptions.ErrStalePlan), errors.Is(err, subscriptions.ErrPeriodNotStarted):
		return New(Unavailable, "nothing could be decided at the moment; ask again, with the same Idempotency-Key")
	default:
		return nil
	}
}

// away reports whether a service could not be reached, or is going.
func away(err error) bool {
	var (
		network net.Error
		connect *pgconn.ConnectError
		refused *pgconn.PgError
	)
	if errors.As(err, &refused) && len(refused.Code) == 5 {
		switch refused.Code[:2] {
		case "08", "53", "57": // connection exception, insufficient resources, operator intervention
			return true
		}
		return false
	}
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// OfDecision is how a decision that denies is told to a client. Its instance is
// the decision's place in the record. Of one that allows it is nil.
func OfDecision(d schemas.DecisionMade) *Problem {
	if d.Allowed {
		return nil
	}
	p := New(ofCode(d.Code), d.Message)
	p.Instance = "/v1/workspaces/" + d.WorkspaceID + "/decisions?execution=" + d.ExecutionID
	p.Limit, p.LimitValue, p.Remaining = d.Limit, d.LimitValue, d.Remaining
	if d.Limit != "" {
		p.Used = &d.Used
	}
	if d.Limit != "" && d.PlanKey != "" {
		p.UpgradeHint = upgrade(d.PlanKey, d.Limit)
	}
	p.ResetsAt, p.RetryAfterMS = InUTC(d.ResetsAt), d.RetryAfterMS
	return p
}

// InUTC is the instant for JSON, nil for none.
func InUTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	utc := t.UTC()
	return &utc
}
