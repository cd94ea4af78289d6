package schemas

import "slices"

// codeUnavailable is the denial for which there may be no plan to name.
const codeUnavailable = 9008

var (
	decisionKinds = []DecisionKind{KindAdmission, KindRuntime}
	decidingLimit = append([]string{""}, LimitNames...)
	// errorNames are those of the codes, 0 first and then 9001 to 9008.
	errorNames = []string{
		"", "PlanExecutionLimitReached", "PlanConcurrentExecutionLimitReached",
		"PlanTaskPerExecutionLimitReached", "PlanExecutionTimeout", "PlanRateLimitExceeded",
		"PlanPayloadSizeExceeded", "PlanStorageLimitReached", "PlanEnforcementUnavailable",
	}
)

func (*DecisionMade) eventType() string   { return TypeDecisionMade }
func (d *DecisionMade) workspace() string { return d.WorkspaceID }

func (d *DecisionMade) fields(f *fields) {
	f.label("decision_id", &d.DecisionID, required)
	word(f, "kind", &d.Kind, decisionKinds)
	f.id("workspace_id", &d.WorkspaceID)
	f.id("execution_id", &d.ExecutionID)
	f.tag("request_event_id", &d.RequestEventID, required)
	f.tag("request_event_source", &d.RequestEventSource, required)
	d.answerFields(f)
	d.usageFields(f)
	d.planFields(f)
	f.instant("decided_at", &d.DecidedAt, required)
}

// answerFields holds allowed and code together: a decision that says both yes
// and 9001 is none. Only one made in shadow mode may, as it denies nothing.
func (d *DecisionMade) answerFields(f *fields) {
	f.boolean("allowed", &d.Allowed, required)
	number(f, "code", &d.Code, bounds{0, codeUnavailable})
	word(f, "error", &d.Error, errorNames)
	f.note("message", &d.Message, required)
	f.boolean("replayed", &d.Replayed, required)
	f.boolean("shadow", &d.Shadow, optional)
	if d.Code > 0 && d.Code < 9001 {
		f.failValue("code", d.Code, "0 or 9001 to 9008")
	}
	if !d.Shadow && d.Allowed != (d.Code == 0) {
		f.fail(invalid(f.key("code"), "is %d, but allowed is %t", d.Code, d.Allowed))
	}
}

func (d *DecisionMade) usageFields(f *fields) {
	word(f, "limit", &d.Limit, decidingLimit)
	f.optionalNumber("limit_value", &d.LimitValue, natural())
	number(f, "used", &d.Used, natural())
	f.optionalNumber("remaining", &d.Remaining, natural())
	f.limitNames("exhausted", &d.Exhausted)
	number(f, "concurrent", &d.Concurrent, natural())
	f.optionalNumber("concurrent_limit", &d.ConcurrentLimit, natural())
	number(f, "peak", &d.Peak, natural())
	f.optionalInstant("resets_at", &d.ResetsAt)
	f.optionalNumber("retry_after_ms", &d.RetryAfterMS, natural())
	f.optionalInstant("lease_expires_at", &d.LeaseExpiresAt)
}

// planFields are all required, except on a 9008: a plan that could not be read
// has no key, no period and no limits.
func (d *DecisionMade) planFields(f *fields) {
	known := presence(d.Code != codeUnavailable)
	if known {
		f.label("plan_key", &d.PlanKey, required)
	} else {
		f.tag("plan_key", &d.PlanKey, optional)
	}
	number(f, "plan_revision", &d.PlanRevision, natural())
	f.optionalUUID("subscription_id", &d.SubscriptionID)
	f.instant("period_start", &d.PeriodStart, known)
	f.instant("period_end", &d.PeriodEnd, known)
	f.object("limits", known, &d.Limits)
	f.boolean("exact", &d.Exact, required)
	f.instant("plan_as_of", &d.PlanAsOf, known)
}

// limitNames is a list of limits. Writing, an absent one becomes an empty one.
func (f *fields) limitNames(name string, v *[]string) {
	if f.reading {
		*v = f.readStrings(name)
	} else if *v == nil {
		*v = []string{}
	}
	if len(*v) > len(LimitNames) {
		f.fail(invalid(f.key(name), "has more than %d names", len(LimitNames)))
	}
	for _, limit := range *v {
		if !slices.Contains(LimitNames, limit) {
			f.failValue(name, limit, "a list of "+list(LimitNames))
		}
	}
}

// readStrings reads a list of strings that has hardly more than LimitNames.
func (f *fields) readStrings(name string) []string {
	raw := f.find(name, required)
	if raw == nil {
		return nil
	}
	if raw[0] != '[' {
		f.fail(invalid(f.key(name), "must be a list"))
		return nil
	}
	texts := []string{}
	for _, element := range elements(raw, len(LimitNames)) {
		if element[0] != '"' {
			f.fail(invalid(f.key(name), "must be a list of strings"))
			return nil
		}
		texts = append(texts, string(unquote(element)))
	}
	return texts
}
