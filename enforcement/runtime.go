package enforcement

import (
	"math"
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// payloadExceeds reports whether a payload is larger than the limit allows.
func payloadExceeds(limits schemas.Limits, bytes int64) bool {
	n, bounded := limits.MaxExecutionPayloadSizeMB.Value()
	return bounded && n <= math.MaxInt64/schemas.BytesPerMegabyte && bytes > n*schemas.BytesPerMegabyte
}

// megabytes is a size in megabytes, a part of one counted as a whole.
func megabytes(bytes int64) int64 {
	whole := bytes / schemas.BytesPerMegabyte
	if bytes%schemas.BytesPerMegabyte > 0 {
		whole++
	}
	return whole
}

// elapsed is how long an execution has run: by the sender's clock where it told
// both ends, else from the admission to now.
func elapsed(p Progress, admitted, now time.Time) time.Duration {
	if !p.StartedAt.IsZero() && !p.At.IsZero() {
		return p.At.Sub(p.StartedAt)
	}
	return now.Sub(admitted)
}

// checkRuntime holds a progress against the limits that the execution was
// admitted with. It returns the code of the first limit passed, in the order
// payload, tasks, duration, with what is used of it; the names of all passed; and
// 0 where none is.
func checkRuntime(p Progress, limits schemas.Limits, ran time.Duration) (code int, used int64, passed []string) {
	note := func(over bool, c int, u int64) {
		if !over {
			return
		}
		if code == 0 {
			code, used = c, u
		}
		passed = append(passed, LimitOfCode(c))
	}
	if p.PayloadBytes != nil {
		note(payloadExceeds(limits, *p.PayloadBytes), CodePayload, megabytes(*p.PayloadBytes))
	}
	if p.Tasks != nil {
		note(limits.MaxTasksPerExecution.Exceeded(*p.Tasks), CodeTasks, *p.Tasks)
	}
	minutes := int64(ran / time.Minute)
	if ran%time.Minute > 0 {
		minutes++
	}
	note(limits.MaxExecutionDurationMinutes.Exceeded(minutes), CodeDuration, minutes)
	return code, used, passed
}

// CheckRunning holds a running execution against the limits that it was admitted
// with: admitted is its admission, which must have allowed it. It is what Extend
// decides of the same progress at the same time, worked out without Redis, so that an
// engine can ask in its own process. It is nil while the execution may go on.
func CheckRunning(admitted schemas.DecisionMade, p Progress, now time.Time) *schemas.DecisionMade {
	t := terms{exact: true, snapshot: snapshot{
		PlanKey: admitted.PlanKey, PlanRevision: admitted.PlanRevision,
		PeriodStart: admitted.PeriodStart, PeriodEnd: admitted.PeriodEnd, Limits: admitted.Limits,
	}}
	if admitted.SubscriptionID != nil {
		t.SubscriptionID = *admitted.SubscriptionID
	}
	rec := record{concurrent: admitted.Concurrent, peak: admitted.Peak, at: admitted.DecidedAt}
	return refuseRunning(p, rec, &t, now)
}

// refuseRunning is the decision that tells an engine to stop an execution.
func refuseRunning(p Progress, rec record, t *terms, now time.Time) *schemas.DecisionMade {
	code, used, passed := checkRuntime(p, t.Limits, elapsed(p, rec.at, now))
	if code == 0 {
		return nil
	}
	id := identify(schemas.KindRuntime, p.WorkspaceID, p.ExecutionID, p.EventSource, p.EventID)
	limit := *t.Limits.Named(LimitOfCode(code))
	d := schemas.DecisionMade{
		DecisionID: id.decisionID(), Kind: schemas.KindRuntime,
		WorkspaceID: p.WorkspaceID, ExecutionID: p.ExecutionID,
		RequestEventID: p.EventID, RequestEventSource: p.EventSource,
		Code: code, Error: CodeName(code), Message: refusal(code, used, limit, t.PlanKey),
		Limit: LimitOfCode(code), LimitValue: limit.Pointer(), Used: used, Remaining: remaining(limit, used),
		Exhausted: passed, Concurrent: rec.concurrent, Peak: rec.peak, DecidedAt: now,
	}
	t.describe(&d)
	return &d
}
