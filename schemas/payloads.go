package schemas

// Each payload's fields method is its rule book, once for reading and writing.
// The JSON Schemas in documents/ say the same; a test holds the two together.

func (*ExecutionRequested) eventType() string   { return TypeExecutionRequested }
func (d *ExecutionRequested) workspace() string { return d.WorkspaceID }

func (d *ExecutionRequested) fields(f *fields) {
	f.id("workspace_id", &d.WorkspaceID)
	f.id("execution_id", &d.ExecutionID)
	f.optionalNumber("payload_bytes", &d.PayloadBytes, counted())
	f.optionalInstant("deadline", &d.Deadline)
}

func (*ExecutionProgressed) eventType() string   { return TypeExecutionProgressed }
func (d *ExecutionProgressed) workspace() string { return d.WorkspaceID }

func (d *ExecutionProgressed) fields(f *fields) {
	f.id("workspace_id", &d.WorkspaceID)
	f.id("execution_id", &d.ExecutionID)
	f.optionalNumber("tasks", &d.Tasks, counted())
	f.optionalNumber("payload_bytes", &d.PayloadBytes, counted())
	f.optionalInstant("started_at", &d.StartedAt)
}

func (*ExecutionCompleted) eventType() string   { return TypeExecutionCompleted }
func (d *ExecutionCompleted) workspace() string { return d.WorkspaceID }

func (d *ExecutionCompleted) fields(f *fields) {
	f.id("workspace_id", &d.WorkspaceID)
	f.id("execution_id", &d.ExecutionID)
	word(f, "outcome", &d.Outcome, outcomes)
	f.optionalNumber("tasks", &d.Tasks, counted())
}

func (*SubscriptionRenewed) eventType() string   { return TypeSubscriptionRenewed }
func (d *SubscriptionRenewed) workspace() string { return d.WorkspaceID }

// The order of period_start and period_end is not looked at here: whoever reads
// the event compares it with the subscription's row anyway.
func (d *SubscriptionRenewed) fields(f *fields) {
	f.id("workspace_id", &d.WorkspaceID)
	f.uuid("subscription_id", &d.SubscriptionID)
	f.optionalUUID("previous_subscription_id", &d.PreviousSubscriptionID)
	word(f, "kind", &d.Kind, RenewalKinds)
	f.label("plan_key", &d.PlanKey, required)
	number(f, "plan_revision", &d.PlanRevision, natural())
	f.instant("period_start", &d.PeriodStart, required)
	f.instant("period_end", &d.PeriodEnd, required)
}

func (*PlanInvalidated) eventType() string   { return TypePlanInvalidated }
func (d *PlanInvalidated) workspace() string { return d.WorkspaceID }

func (d *PlanInvalidated) fields(f *fields) {
	f.id("workspace_id", &d.WorkspaceID)
	number(f, "plan_revision", &d.PlanRevision, natural())
	f.note("reason", &d.Reason, required)
}

func (*UsageThresholdReached) eventType() string   { return TypeUsageThresholdReached }
func (d *UsageThresholdReached) workspace() string { return d.WorkspaceID }

// The limit is one of a plan's limits or the name of a feature.
func (d *UsageThresholdReached) fields(f *fields) {
	f.id("workspace_id", &d.WorkspaceID)
	f.id("limit", &d.Limit)
	number(f, "percent", &d.Percent, bounds{1, 100})
	number(f, "used", &d.Used, natural())
	number(f, "limit_value", &d.LimitValue, natural())
	f.object("period", required, &d.Period)
}

func (p *EventsPeriod) fields(f *fields) {
	f.instant("start", &p.Start, required)
	f.instant("end", &p.End, required)
}
