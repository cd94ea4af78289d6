package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
)

// admission is one caller's request.
type admission struct {
	request enforcement.Request
	trace   nats.Header
}

type traceKey struct{}

// WithTrace makes decisions that are asked for under ctx carry the trace headers,
// traceparent and tracestate, that are among header's.
func WithTrace(ctx context.Context, header map[string][]string) context.Context {
	return context.WithValue(ctx, traceKey{}, schemas.TraceOf(header))
}

func traceOf(ctx context.Context) nats.Header {
	trace, _ := ctx.Value(traceKey{}).(nats.Header)
	return trace
}

// Admit asks whether an execution may start. With a nil error the decision, an allow or a
// denial, is in the decisions stream and is the one that stands: where the stream had
// another one of the same request, that one is returned.
//
// The error is a *usage.InvalidArgument for a request that is wrong itself, wraps
// subscriptions.ErrNotEntitled or ErrNoDefaultPlan where the workspace has no plan, and
// else wraps enforcement.ErrUnavailable: no answer within Patience, the request's deadline
// and ctx. Nothing is published then on behalf of the caller, no 9008 either: asking
// again, with this event or another, takes no second slot. A decision that is under way
// when ctx ends is still published.
func (e *Executions) Admit(ctx context.Context, r enforcement.Request) (schemas.DecisionMade, error) {
	if err := errors.Join(checkNames(r.WorkspaceID, r.ExecutionID), checkEvent(r.EventID, r.EventSource),
		checkCount("payload_bytes", &r.PayloadBytes)); err != nil {
		return schemas.DecisionMade{}, err
	}
	waiting, cancel := e.patient(ctx, r.Deadline)
	defer cancel()
	d, err := answer(waiting, e, &e.admissions, admission{request: r, trace: traceOf(ctx)})
	if err != nil {
		return schemas.DecisionMade{}, fmt.Errorf("admit execution %s of workspace %s: %w", r.ExecutionID, r.WorkspaceID, err)
	}
	if d.Admits() {
		e.stats.allowed.Add(1)
	} else {
		e.stats.denied.Add(1)
	}
	return d, nil
}

type pendingAdmission = pending[admission, schemas.DecisionMade]

// decide answers a batch of admissions.
//
//	Admit ─► publish, await ─┬─► what stands
//	  └ late: nothing        └ a denial stands, Redis allowed: Withdraw, then the denial
func (e *Executions) decide(batch []*pendingAdmission) {
	ctx, cancel := e.flight(len(batch))
	defer cancel()
	until := e.options.Now().Add(e.options.RebuildFence)
	results := e.options.Enforcer.Admit(ctx, requestsOf(batch))
	isLate := !e.options.Now().Before(until)
	decided := make([]*pendingAdmission, 0, len(batch))
	out := make([]schemas.OutgoingDecision, 0, len(batch))
	for i, each := range batch {
		if each.err = results[i].Err; each.err == nil && isLate {
			each.err = errLate
		}
		if each.err == nil {
			decided = append(decided, each)
			out = append(out, schemas.OutgoingDecision{Decision: results[i].Decision, About: each.question.trace})
		}
	}
	if len(decided) == 0 {
		return
	}
	var overruled []*pendingAdmission
	for i, written := range e.options.Decisions.Write(ctx, out) {
		each := decided[i]
		each.answer, each.err = written.Stands, written.Err
		if each.err == nil && out[i].Decision.Admits() && !written.Stands.Admits() {
			overruled = append(overruled, each)
		}
	}
	e.withdraw(overruled)
}

func requestsOf(batch []*pendingAdmission) []enforcement.Request {
	requests := make([]enforcement.Request, len(batch))
	for i, each := range batch {
		requests[i] = each.question.request
	}
	return requests
}

// withdraw puts the denial that stands on record in Redis, which allowed. Without that
// there is no answer yet: the slot would be held for an execution that does not start.
func (e *Executions) withdraw(overruled []*pendingAdmission) {
	if len(overruled) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.options.RebuildFence)
	defer cancel()
	for i, result := range e.options.Enforcer.Withdraw(ctx, requestsOf(overruled)) {
		if overruled[i].err = result.Err; result.Err == nil {
			e.stats.withdrawn.Add(1)
		}
	}
}

// checkNames refuses what names no workspace or no execution.
func checkNames(workspace, execution string) error {
	for _, each := range [...]struct{ field, value string }{{"workspace_id", workspace}, {"execution_id", execution}} {
		if !schemas.ValidID(each.value) {
			return &usage.InvalidArgument{Field: each.field, Detail: idRule}
		}
	}
	return nil
}

// checkEvent refuses an identity that a decision could not name.
func checkEvent(id, source string) error {
	if !schemas.ValidLabel(id) || !schemas.ValidLabel(source) {
		return &usage.InvalidArgument{Field: "Idempotency-Key", Detail: "must be 1 to 256 characters without control characters"}
	}
	return nil
}

// checkCount refuses a number that counts nothing; nil is none.
func checkCount(field string, n *int64) error {
	if n != nil && *n < 0 {
		return &usage.InvalidArgument{Field: field, Detail: "must be 0 or more"}
	}
	return nil
}
