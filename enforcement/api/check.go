package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// MaxProbes is how many probes one Check answers.
const MaxProbes = 100

// Probe asks whether there is room, and takes nothing: for units of a feature, or for
// an execution.
type Probe struct {
	// Feature is the catalog's name or storage_bytes; empty where Execution is set. A boolean
	// feature is allowed where it is on.
	Feature string `json:"feature,omitempty" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$" example:"automations"`
	// Quantity is how many units; 1 unless given, and 0 asks whether the plan has the feature.
	Quantity *int64 `json:"quantity,omitempty" minimum:"0" maximum:"9007199254740991" example:"2"`
	// ResourceID asks about units of that resource, which may be locked.
	ResourceID string `json:"resource_id,omitempty" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$"`
	// Execution asks whether an execution would be admitted, with a payload of that many bytes.
	Execution    bool  `json:"execution,omitempty"`
	PayloadBytes int64 `json:"payload_bytes,omitempty" minimum:"0" maximum:"9007199254740991"`
}

// ProbeAnswer is what would be decided now.
type ProbeAnswer struct {
	// Feature and Execution are the probe's.
	Feature   string `json:"feature,omitempty"`
	Execution bool   `json:"execution,omitempty"`
	Allowed   bool   `json:"allowed"`
	// Code is that of a decision, 0 where it is allowed or the feature's denial has none.
	Code int `json:"code"`
	// Error is empty, the code's name, or QuotaExceeded, PolicyViolation, ResourceLocked
	// or InvalidArgument; Message is a sentence for a person.
	Error   string `json:"error"`
	Message string `json:"message"`
	// Exhausted are the names of all limits that stand against an execution. The numbers
	// are of the one that decides, the first in the order of the codes' precedence, and of
	// the execution quota where it is allowed.
	Exhausted []string `json:"exhausted,omitempty" nullable:"false"`
	// Used is what is used now. Limit and Remaining are nil where there is no bound.
	Used      int64  `json:"used"`
	Limit     *int64 `json:"limit"`
	Unlimited bool   `json:"unlimited"`
	Remaining *int64 `json:"remaining"`
	// ResetsAt is when the quota begins anew, nil where it never does. RetryAfterMS is
	// when to ask again about an execution.
	ResetsAt     *time.Time `json:"resets_at"`
	RetryAfterMS *int64     `json:"retry_after_ms,omitempty"`
}

// Check answers each probe by itself and in order, as if the others were not asked, and
// consumes nothing: what is free now may be taken a moment later. It takes one round
// trip to Postgres for the features and one to Redis for the executions. A probe that is
// wrong makes the whole call a *usage.InvalidArgument, and nothing is looked at.
func (r *Reader) Check(ctx context.Context, workspace string, probes []Probe) ([]ProbeAnswer, error) {
	if err := checkProbes(workspace, probes); err != nil {
		return nil, err
	}
	answers := make([]ProbeAnswer, len(probes))
	if err := r.checkFeatures(ctx, workspace, probes, answers); err != nil {
		return nil, unread("check workspace "+workspace, err)
	}
	if err := r.checkExecutions(ctx, workspace, probes, answers); err != nil {
		return nil, unread("check workspace "+workspace, err)
	}
	return answers, nil
}

func checkProbes(workspace string, probes []Probe) error {
	if err := checkWorkspace(workspace); err != nil {
		return err
	}
	if len(probes) == 0 || len(probes) > MaxProbes {
		return &usage.InvalidArgument{Field: "checks", Detail: fmt.Sprintf("must be 1 to %d, and are %d", MaxProbes, len(probes))}
	}
	for i, p := range probes {
		wrong := func(field, detail string) error {
			return &usage.InvalidArgument{Field: fmt.Sprintf("checks[%d].%s", i, field), Detail: detail}
		}
		switch {
		case p.Execution == (p.Feature != ""):
			return wrong("feature", "or execution must be given, and one of them only")
		case p.Execution && (p.Quantity != nil || p.ResourceID != ""):
			return wrong("execution", "has no quantity and no resource_id; ask about a feature by itself")
		case p.Execution && p.PayloadBytes < 0:
			return wrong("payload_bytes", "must not be negative")
		case p.Execution:
		case !schemas.ValidID(p.Feature):
			return wrong("feature", idRule)
		case p.PayloadBytes != 0:
			return wrong("payload_bytes", "is for an execution")
		case p.Quantity != nil && *p.Quantity < 0:
			return wrong("quantity", "must not be negative")
		case p.ResourceID != "" && !schemas.ValidID(p.ResourceID):
			return wrong("resource_id", idRule)
		}
	}
	return nil
}

func (r *Reader) checkFeatures(ctx context.Context, workspace string, probes []Probe, answers []ProbeAnswer) error {
	var changes []usage.Change
	var places []int
	for i, p := range probes {
		if p.Execution {
			continue
		}
		quantity := int64(1)
		if p.Quantity != nil {
			quantity = *p.Quantity
		}
		changes = append(changes, usage.Change{WorkspaceID: workspace, Feature: p.Feature, Quantity: quantity, ResourceID: p.ResourceID})
		places = append(places, i)
	}
	if len(changes) == 0 {
		return nil
	}
	verdicts, err := r.options.Counts.Check(ctx, changes)
	if err != nil {
		return err
	}
	for n, v := range verdicts {
		answer, err := answerOf(changes[n].Feature, v)
		if err != nil {
			return err
		}
		answers[places[n]] = answer
	}
	return nil
}

// answerOf tells a verdict. An error that refuses nothing is returned.
func answerOf(feature string, v usage.Verdict) (ProbeAnswer, error) {
	answer := ProbeAnswer{
		Feature: feature, Allowed: v.Err == nil,
		Used: v.Used, Limit: v.Limit.Pointer(), Unlimited: v.Limit.IsUnlimited(), Remaining: v.Remaining(), ResetsAt: v.ResetsAt,
	}
	if v.Err == nil {
		return answer, nil
	}
	var (
		quota  *usage.QuotaExceeded
		policy *usage.PolicyViolation
		locked *usage.ResourceLocked
		wrong  *usage.InvalidArgument
	)
	answer.Message = v.Err.Error()
	switch {
	case errors.As(v.Err, &policy) && policy.Uncounted && v.Limit.IsUnlimited():
		answer.Allowed, answer.Message = true, "" // it is on; that it cannot be counted was not asked
	case errors.As(v.Err, &policy) && policy.Uncounted:
		off := *policy
		off.Uncounted = false
		answer.Error, answer.Message = "PolicyViolation", off.Error()
	case errors.As(v.Err, &quota) && feature == schemas.FeatureStorage:
		answer.Code, answer.Error = enforcement.CodeStorage, enforcement.CodeName(enforcement.CodeStorage)
	case errors.As(v.Err, &quota):
		answer.Error = "QuotaExceeded"
	case errors.As(v.Err, &policy):
		answer.Error = "PolicyViolation"
	case errors.As(v.Err, &locked):
		answer.Error = "ResourceLocked"
	case errors.As(v.Err, &wrong):
		answer.Error = "InvalidArgument"
	default:
		return ProbeAnswer{}, v.Err
	}
	return answer, nil
}

func (r *Reader) checkExecutions(ctx context.Context, workspace string, probes []Probe, answers []ProbeAnswer) error {
	var payloads []int64
	var places []int
	for i, p := range probes {
		if p.Execution {
			payloads, places = append(payloads, p.PayloadBytes), append(places, i)
		}
	}
	if len(payloads) == 0 {
		return nil
	}
	plan, err := r.options.Plans.Lookup(ctx, workspace, r.options.Now())
	if err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, r.options.RedisTimeout)
	defer cancel()
	decisions, err := r.options.Gauge.Probe(asking, plan, payloads)
	if err != nil {
		return err
	}
	for n, d := range decisions {
		answers[places[n]] = ProbeAnswer{
			Execution: true, Allowed: d.Allowed, Code: d.Code, Error: d.Error, Message: d.Message, Exhausted: d.Exhausted,
			Used: d.Used, Limit: d.LimitValue, Unlimited: d.LimitValue == nil, Remaining: d.Remaining,
			ResetsAt: quotaResets(d, plan), RetryAfterMS: d.RetryAfterMS,
		}
	}
	return nil
}

// quotaResets is when waiting for a fresh quota helps, and where it is allowed when
// the next one begins.
func quotaResets(d schemas.DecisionMade, plan subscriptions.PlanInfo) *time.Time {
	if d.Allowed || d.Code == enforcement.CodeExecutionQuota {
		end := plan.Period.End.UTC()
		return &end
	}
	return nil
}
