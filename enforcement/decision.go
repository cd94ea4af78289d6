package enforcement

import (
	"fmt"
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// decide tells a record as a decision. Terms are nil where none are known: a 9008
// that was taken without a plan, or an answer older than its snapshot is kept.
func decide(r Request, id identity, rec record, t *terms) schemas.DecisionMade {
	d := schemas.DecisionMade{
		DecisionID: id.decisionID(), Kind: schemas.KindAdmission,
		WorkspaceID: r.WorkspaceID, ExecutionID: r.ExecutionID,
		RequestEventID: r.EventID, RequestEventSource: r.EventSource,
		Allowed: !rec.denied(), Exhausted: []string{},
		Concurrent: rec.concurrent, Peak: rec.peak, Used: rec.used,
		Exact: true, DecidedAt: rec.at,
	}
	if t != nil {
		t.describe(&d)
	}
	if rec.denied() {
		refuse(&d, r, rec, t)
		return d
	}
	d.Message = "Allowed."
	if t == nil {
		return d
	}
	d.LimitValue = t.Limits.MaxExecutions.Pointer()
	d.Remaining = remaining(t.Limits.MaxExecutions, rec.used)
	if rec.status == 'A' {
		expiry := rec.at.Add(time.Duration(t.LeaseMS) * time.Millisecond)
		d.LeaseExpiresAt = &expiry
	}
	return d
}

// describe fills in the plan, the period and the limits.
func (t *terms) describe(d *schemas.DecisionMade) {
	d.PlanKey, d.PlanRevision = t.PlanKey, t.PlanRevision
	if t.SubscriptionID != "" {
		id := t.SubscriptionID
		d.SubscriptionID = &id
	}
	d.PeriodStart, d.PeriodEnd = t.PeriodStart, t.PeriodEnd
	resets := t.PeriodEnd
	d.ResetsAt = &resets
	d.Limits = t.Limits
	d.ConcurrentLimit = t.Limits.MaxConcurrentExecutions.Pointer()
	d.Exact = t.exact
	// A repeated answer's plan was read before it was first given.
	d.PlanAsOf = t.readAt
	if t.readAt.IsZero() || t.readAt.After(d.DecidedAt) {
		d.PlanAsOf = d.DecidedAt
	}
}

// reasonCodes is in the order in which the first of several reasons is the code.
var reasonCodes = []struct{ reason, code int }{
	{reasonUnavailable, CodeUnavailable},
	{reasonPayload, CodePayload},
	{reasonQuota, CodeExecutionQuota},
	{reasonConcurrency, CodeConcurrency},
	{reasonRate, CodeRate},
}

func refuse(d *schemas.DecisionMade, r Request, rec record, t *terms) {
	for _, each := range reasonCodes {
		if rec.reasons&each.reason == 0 {
			continue
		}
		if d.Code == 0 {
			d.Code = each.code
		}
		if limit := LimitOfCode(each.code); limit != "" {
			d.Exhausted = append(d.Exhausted, limit)
		}
	}
	d.Error, d.Limit = CodeName(d.Code), LimitOfCode(d.Code)
	if rec.retry > 0 {
		ms := rec.retry.Milliseconds()
		d.RetryAfterMS = &ms
	}
	if d.Code == CodeUnavailable {
		d.Used = 0
		d.Message = unavailableMessage("no answer could be given in time")
		return
	}
	if t == nil {
		d.Message = "Refused under terms that are no longer kept."
		return
	}
	limit := *t.Limits.Named(d.Limit)
	d.Used = refusedUse(d.Code, r, rec, limit)
	d.LimitValue, d.Remaining = limit.Pointer(), remaining(limit, d.Used)
	d.Message = refusal(d.Code, d.Used, limit, t.PlanKey)
}

// refusedUse is how much of the deciding limit was in use, in the limit's unit.
func refusedUse(code int, r Request, rec record, limit schemas.Limit) int64 {
	switch code {
	case CodeConcurrency:
		return rec.concurrent
	case CodePayload:
		return megabytes(r.PayloadBytes)
	case CodeRate:
		n, _ := limit.Value() // the scripts keep an arrival time, not a count: all of it is in use
		return n
	default:
		return rec.used
	}
}

func remaining(limit schemas.Limit, used int64) *int64 {
	n, bounded := limit.Value()
	if !bounded {
		return nil
	}
	left := max(n-used, 0)
	return &left
}

// refusal is the sentence for a person.
func refusal(code int, used int64, limit schemas.Limit, plan string) string {
	switch code {
	case CodeExecutionQuota:
		return fmt.Sprintf("All %s executions of this period on plan %s are used.", limit, plan)
	case CodeConcurrency:
		return fmt.Sprintf("%d executions are running; plan %s allows %s at once.", used, plan, limit)
	case CodeRate:
		return fmt.Sprintf("More than %s executions a minute; plan %s allows no more.", limit, plan)
	case CodePayload:
		return fmt.Sprintf("The payload of %d MB is larger than the %s MB that plan %s allows.", used, limit, plan)
	case CodeTasks:
		return fmt.Sprintf("The execution has %d tasks; plan %s allows %s.", used, plan, limit)
	case CodeDuration:
		return fmt.Sprintf("The execution has run for %d minutes; plan %s allows %s.", used, plan, limit)
	default:
		return fmt.Sprintf("Limit %s of plan %s is reached.", LimitOfCode(code), plan)
	}
}

func unavailableMessage(reason string) string {
	return "Refused: " + reason + "."
}

// Unavailable is the 9008 for a request that could not be decided, with the
// reason as the end of its message. It is not on Redis's record: see Withdraw.
func (e *Enforcer) Unavailable(r Request, reason string, at time.Time) schemas.DecisionMade {
	id := identify(schemas.KindAdmission, r.WorkspaceID, r.ExecutionID, r.EventSource, r.EventID)
	d := decide(r, id, record{status: 'D', reasons: reasonUnavailable, at: at.UTC()}, nil)
	d.Message = unavailableMessage(reason)
	return d
}
