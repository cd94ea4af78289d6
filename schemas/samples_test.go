package schemas_test

import (
	"fmt"
	"time"

	"github.com/headroomhq/headroom/schemas"
)

const (
	subscriptionID = "0192f3a1-7c1e-7b4e-9d3a-5f6b7c8d9e0f"
	previousID     = "0192f3a1-0000-7b4e-9d3a-5f6b7c8d9e0f"
	sampleID       = "0192f3a2-aaaa-7b4e-9d3a-5f6b7c8d9e0f"
	sampleSource   = "//engine.example/eu-1"
)

// at is an instant on the day that all samples are from.
func at(hour, minute int) time.Time {
	return time.Date(2026, time.November, 30, hour, minute, 5, 123_000_000, time.UTC)
}

func month(first time.Month) time.Time {
	return time.Date(2026, first, 1, 0, 0, 0, 0, time.UTC)
}

func requested() schemas.ExecutionRequested {
	return schemas.ExecutionRequested{
		WorkspaceID: "ws_acme", ExecutionID: "exec-1", PayloadBytes: new(int64(2048)), Deadline: new(at(10, 1)),
	}
}

func progressed() schemas.ExecutionProgressed {
	return schemas.ExecutionProgressed{
		WorkspaceID: "ws_acme", ExecutionID: "exec-1", Tasks: new(int64(7)),
		PayloadBytes: new(int64(4096)), StartedAt: new(at(10, 0)),
	}
}

func completed() schemas.ExecutionCompleted {
	return schemas.ExecutionCompleted{
		WorkspaceID: "ws_acme", ExecutionID: "exec-1", Outcome: schemas.OutcomeSucceeded, Tasks: new(int64(9)),
	}
}

func renewed() schemas.SubscriptionRenewed {
	return schemas.SubscriptionRenewed{
		WorkspaceID: "ws_acme", SubscriptionID: subscriptionID, PreviousSubscriptionID: new(previousID), Kind: "cycle",
		PlanKey: "pro", PlanRevision: 3, PeriodStart: month(time.November), PeriodEnd: month(time.December),
	}
}

func invalidated() schemas.PlanInvalidated {
	return schemas.PlanInvalidated{WorkspaceID: "ws_acme", PlanRevision: 12, Reason: "plan assigned"}
}

func threshold() schemas.UsageThresholdReached {
	return schemas.UsageThresholdReached{
		WorkspaceID: "ws_acme", Limit: schemas.LimitExecutions, Percent: 80, Used: 80, LimitValue: 100,
		Period: schemas.EventsPeriod{Start: month(time.November), End: month(time.December)},
	}
}

func sampleLimits() schemas.Limits {
	return schemas.Limits{
		MaxExecutions:               schemas.LimitOf(100),
		MaxConcurrentExecutions:     schemas.LimitOf(2),
		MaxTasksPerExecution:        schemas.LimitOf(50),
		MaxExecutionDurationMinutes: schemas.LimitOf(10),
		MaxExecutionPayloadSizeMB:   schemas.LimitOf(5),
		MaxStorageMB:                schemas.LimitOf(0),
		MaxExecutionsPerMinute:      schemas.Unlimited,
	}
}

func allowed() schemas.DecisionMade {
	return schemas.DecisionMade{
		DecisionID: "exec-1:" + sampleID + ":admission", Kind: schemas.KindAdmission,
		WorkspaceID: "ws_acme", ExecutionID: "exec-1",
		RequestEventID: sampleID, RequestEventSource: sampleSource,
		Allowed: true, Message: "The execution may start.",
		Limit: schemas.LimitExecutions, LimitValue: new(int64(100)), Used: 12, Remaining: new(int64(88)), Exhausted: []string{},
		Concurrent: 1, ConcurrentLimit: new(int64(2)), Peak: 2,
		PlanKey: "free", PlanRevision: 3, SubscriptionID: new(subscriptionID),
		PeriodStart: month(time.November), PeriodEnd: month(time.December), Limits: sampleLimits(),
		Exact: true, PlanAsOf: at(9, 59), DecidedAt: at(10, 0),
	}
}

func denied() schemas.DecisionMade {
	d := allowed()
	d.Allowed, d.Code, d.Error = false, 9001, "PlanExecutionLimitReached"
	d.Message = "All 100 executions of this period are used; it ends on 1 December."
	d.Used, d.Remaining, d.Exhausted = 100, new(int64(0)), []string{schemas.LimitExecutions, schemas.LimitConcurrentExecutions}
	d.ResetsAt, d.RetryAfterMS, d.Replayed = new(month(time.December)), new(int64(50_000)), true
	return d
}

func unavailable() schemas.DecisionMade {
	return schemas.DecisionMade{
		DecisionID: "exec-1:" + sampleID + ":admission", Kind: schemas.KindAdmission,
		WorkspaceID: "ws_acme", ExecutionID: "exec-1",
		RequestEventID: sampleID, RequestEventSource: sampleSource,
		Code: 9008, Error: "PlanEnforcementUnavailable", Message: "The plan could not be read within 10s.",
		Exhausted: []string{}, DecidedAt: at(10, 0),
	}
}

// codec is one event type with its type parameter taken away.
type codec struct {
	name    string
	typ     string
	samples []any
	encode  func(event any) ([]byte, error)
	decode  func(subject string, body []byte) (any, error)
}

func codecOf[T schemas.Data](typ string, samples ...T) codec {
	c := codec{
		name:   typ[len("headroom.") : len(typ)-len(".v1")],
		typ:    typ,
		encode: func(event any) ([]byte, error) { return schemas.Encode(event.(schemas.Event[T])) },
		decode: func(subject string, body []byte) (any, error) { return schemas.Decode[T](subject, body) },
	}
	for _, s := range samples {
		c.samples = append(c.samples, schemas.NewEvent(sampleSource, sampleID, at(10, 0), s))
	}
	return c
}

// codecs are all event types, each with events that are right.
func codecs() []codec {
	return []codec{
		codecOf(schemas.TypeExecutionRequested, requested(), schemas.ExecutionRequested{WorkspaceID: "0", ExecutionID: "0"}),
		codecOf(schemas.TypeExecutionProgressed, progressed(), schemas.ExecutionProgressed{WorkspaceID: "a", ExecutionID: "b"}),
		codecOf(schemas.TypeExecutionCompleted, completed(), schemas.ExecutionCompleted{WorkspaceID: "a", ExecutionID: "b", Outcome: schemas.OutcomeNotStarted}),
		codecOf(schemas.TypeSubscriptionRenewed, renewed()),
		codecOf(schemas.TypeDecisionMade, allowed(), denied(), unavailable()),
		codecOf(schemas.TypePlanInvalidated, invalidated()),
		codecOf(schemas.TypeUsageThresholdReached, threshold()),
	}
}

// mustEncode is a sample's body; a sample that does not encode is a broken test.
func mustEncode(c codec, sample int) []byte {
	body, err := c.encode(c.samples[sample])
	if err != nil {
		panic(fmt.Sprintf("sample %d of %s: %v", sample, c.name, err))
	}
	return body
}
