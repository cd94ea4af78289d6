package api

import (
	"context"
	"net/http"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/schemas"
)

// Executor decides about executions. Executions is one.
type Executor interface {
	// Admit decides. Without an error the decision is on the decisions stream.
	Admit(ctx context.Context, r enforcement.Request) (schemas.DecisionMade, error)
	// Progress extends a lease, and holds what is reported against the limits.
	Progress(ctx context.Context, p enforcement.Progress) (enforcement.Extension, error)
	// Complete frees the slot, and gives the quota unit back where the outcome says so.
	Complete(ctx context.Context, c enforcement.Completion, tasks *int64, eventID string) (enforcement.Release, error)
}

// admitBody asks for one execution.
type admitBody struct {
	ExecutionID  string `json:"execution_id" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$" example:"ex_1" doc:"Names the execution; unique within the workspace."`
	PayloadBytes int64  `json:"payload_bytes,omitempty" minimum:"0" maximum:"9007199254740991" example:"2048" doc:"The size of the request's payload."`
}

// progressBody says how far a running execution has come.
type progressBody struct {
	Tasks        *int64 `json:"tasks,omitempty" minimum:"0" maximum:"9007199254740991" example:"7" doc:"How many tasks it has run so far."`
	PayloadBytes *int64 `json:"payload_bytes,omitempty" minimum:"0" maximum:"9007199254740991" example:"4096" doc:"The size of its response so far."`
}

// progressAnswer is when the lease ends now.
type progressAnswer struct {
	ExecutionID    string    `json:"execution_id"`
	LeaseExpiresAt time.Time `json:"lease_expires_at" doc:"When the slot frees itself, unless progress is reported before."`
}

// completeBody says how an execution ended.
type completeBody struct {
	Outcome schemas.Outcome `json:"outcome" enum:"succeeded,failed,canceled,not_started" example:"succeeded" doc:"How it ended; not_started gives the quota unit back."`
	Tasks   *int64          `json:"tasks,omitempty" minimum:"0" maximum:"9007199254740991" example:"7" doc:"How many tasks it ran."`
}

// completeAnswer says what that did.
type completeAnswer struct {
	Released bool `json:"released" doc:"Whether a slot became free: not where the execution was over, or never admitted."`
}

func executionRoutes() []route {
	return []route{
		{
			id: "admitExecution", method: http.MethodPost, path: "/v1/workspaces/{workspace_id}/executions", scope: ScopeExecute,
			summary:     "Ask for an execution to be admitted",
			description: "The decision, if it allows. It is on the decisions stream as well, and so is one that denies. With an Idempotency-Key the request is the same event each time, and gets the same decision.",
			body:        typeOf[admitBody](), answer: typeOf[schemas.DecisionMade](), status: http.StatusCreated, limited: true,
			problems: []string{problems.Executions, problems.Concurrency, problems.Rate, problems.Payload, problems.Undecided, problems.NotEntitled},
			serve:    admitExecution,
		},
		{
			id: "reportProgress", method: http.MethodPatch, path: "/v1/workspaces/{workspace_id}/executions/{execution_id}", scope: ScopeExecute,
			summary:     "Report the progress of a running execution",
			description: "Extends the lease. A limit that the execution has passed is a problem: stop it.",
			body:        typeOf[progressBody](), optional: true, answer: typeOf[progressAnswer](), status: http.StatusOK,
			problems: []string{problems.Tasks, problems.Duration, problems.Payload, problems.NotRunning},
			serve:    reportProgress,
		},
		{
			id: "completeExecution", method: http.MethodPost, path: "/v1/workspaces/{workspace_id}/executions/{execution_id}/complete", scope: ScopeExecute,
			summary:     "Say that an execution is over",
			description: "Frees its slot. An execution that is not known is remembered as over, so that its request, when it comes, takes no slot.",
			body:        typeOf[completeBody](), answer: typeOf[completeAnswer](), status: http.StatusOK,
			serve: completeExecution,
		},
	}
}

func admitExecution(ctx context.Context, h *HTTP, c *exchange) ([]byte, error) {
	b, err := decoded[admitBody](c)
	if err != nil {
		return nil, err
	}
	if err := h.known(ctx, c); err != nil {
		return nil, err
	}
	decision, err := h.executions.Admit(ctx, enforcement.Request{
		WorkspaceID: c.workspace(), ExecutionID: b.ExecutionID, PayloadBytes: b.PayloadBytes,
		EventID: c.event(), EventSource: c.source(),
	})
	if err != nil {
		return nil, err
	}
	if p := problems.OfDecision(decision); p != nil {
		return nil, p
	}
	problems.SetRateLimit(c.header, quotasOfDecision(decision, c.now())...)
	return encoded(decision)
}

func reportProgress(ctx context.Context, h *HTTP, c *exchange) ([]byte, error) {
	b, err := decoded[progressBody](c)
	if err != nil {
		return nil, err
	}
	x, err := h.executions.Progress(ctx, enforcement.Progress{
		WorkspaceID: c.workspace(), ExecutionID: c.execution(), EventID: newID(), EventSource: c.source(),
		Tasks: b.Tasks, PayloadBytes: b.PayloadBytes,
	})
	switch {
	case err != nil:
		return nil, err
	case x.Err != nil:
		return nil, x.Err
	case x.Decision != nil && !x.Decision.Allowed:
		return nil, problems.OfDecision(*x.Decision)
	case !x.Live:
		return nil, problems.New(problems.NotRunning, "this execution holds no lease: it was never admitted, is over, or its lease ended")
	}
	return encoded(progressAnswer{ExecutionID: c.execution(), LeaseExpiresAt: x.LeaseExpiresAt.UTC()})
}

func completeExecution(ctx context.Context, h *HTTP, c *exchange) ([]byte, error) {
	b, err := decoded[completeBody](c)
	if err != nil {
		return nil, err
	}
	if err := h.known(ctx, c); err != nil {
		return nil, err
	}
	release, err := h.executions.Complete(ctx, enforcement.Completion{
		WorkspaceID: c.workspace(), ExecutionID: c.execution(), Outcome: b.Outcome,
	}, b.Tasks, c.key)
	if err == nil {
		err = release.Err
	}
	return viewed(completeAnswer{Released: release.Released}, err)
}
