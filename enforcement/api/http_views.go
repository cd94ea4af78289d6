package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/enforcement/problems"
)

// WorkspaceViewer shows what is so at this moment. Reader does.
type WorkspaceViewer interface {
	Workspace(ctx context.Context, workspace string) (WorkspaceView, error)
	Executions(ctx context.Context, workspace string) ([]ExecutionView, error)
	Check(ctx context.Context, workspace string, probes []Probe) ([]ProbeAnswer, error)
}

// HistoryViewer shows what was. Reader does.
type HistoryViewer interface {
	Subscriptions(ctx context.Context, workspace string, limit int) ([]SubscriptionView, error)
	Decisions(ctx context.Context, q ledger.Query) ([]DecisionView, error)
}

// Viewer is both.
type Viewer interface {
	WorkspaceViewer
	HistoryViewer
}

// checkBody is what is asked, in one call.
type checkBody struct {
	Checks []Probe `json:"checks" minItems:"1" maxItems:"100" nullable:"false" doc:"What to check."`
}

// checkAnswer is an answer for each, in the same order.
type checkAnswer struct {
	Checks []ProbeAnswer `json:"checks" nullable:"false"`
}

func viewRoutes() []route {
	const workspace = "/v1/workspaces/{workspace_id}"
	return []route{
		{
			id: "getWorkspace", method: http.MethodGet, path: workspace, scope: ScopeRead,
			summary: "A workspace's plan, subscription, period, limits and usage",
			answer:  typeOf[WorkspaceView](), status: http.StatusOK,
			problems: []string{problems.NotEntitled},
			serve: func(ctx context.Context, h *HTTP, c *exchange) ([]byte, error) {
				return viewed(h.reader.Workspace(ctx, c.workspace()))
			},
		},
		{
			id: "listExecutions", method: http.MethodGet, path: workspace + "/executions", scope: ScopeRead,
			summary: "The executions that run", answer: typeOf[[]ExecutionView](), status: http.StatusOK,
			serve: func(ctx context.Context, h *HTTP, c *exchange) ([]byte, error) {
				return listed(h.reader.Executions(ctx, c.workspace()))
			},
		},
		{
			id: "listSubscriptions", method: http.MethodGet, path: workspace + "/subscriptions", scope: ScopeRead,
			summary: "The rows of its subscriptions, newest first", answer: typeOf[[]SubscriptionView](), status: http.StatusOK,
			query: []parameter{limitParameter(ledger.DefaultLimit, ledger.MaxLimit)},
			serve: func(ctx context.Context, h *HTTP, c *exchange) ([]byte, error) {
				return listed(h.reader.Subscriptions(ctx, c.workspace(), c.number(inLimit, ledger.DefaultLimit)))
			},
		},
		{
			id: "listDecisions", method: http.MethodGet, path: workspace + "/decisions", scope: ScopeRead,
			summary:     "The record of its decisions, newest first",
			description: "A page ends with a Link to the next one, if there is more. Of denials the last of each minute and code is kept.",
			answer:      typeOf[[]DecisionView](), status: http.StatusOK, paged: true,
			query: []parameter{
				{name: inExecutionQuery, schema: idSchema(), doc: "Only what is about this execution.", check: checkID},
				limitParameter(ledger.DefaultLimit, ledger.MaxLimit),
				{name: inBefore, schema: instantSchema(), doc: "Only what is older than this instant.", check: checkInstant},
			},
			serve: listDecisions,
		},
		{
			id: "checkMany", method: http.MethodPost, path: workspace + "/check", scope: ScopeRead,
			summary:     "Ask for many things at once whether there is room, consuming nothing",
			description: "The answers are in the order of the checks. What is allowed now may not be a moment later.",
			body:        typeOf[checkBody](), answer: typeOf[checkAnswer](), status: http.StatusOK,
			problems: []string{problems.NotEntitled},
			serve:    checkMany,
		},
	}
}

// viewed writes one thing.
func viewed[V any](v V, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return encoded(v)
}

// listed writes a list, an empty one as [].
func listed[V any](list []V, err error) ([]byte, error) {
	if list == nil {
		list = []V{}
	}
	return viewed(list, err)
}

func listDecisions(ctx context.Context, h *HTTP, c *exchange) ([]byte, error) {
	q := ledger.Query{
		Workspace: c.workspace(), Execution: c.query.Get(inExecutionQuery), Limit: c.number(inLimit, ledger.DefaultLimit),
	}
	if before := c.query.Get(inBefore); before != "" {
		if err := q.Before.UnmarshalText([]byte(before)); err != nil {
			return nil, fmt.Errorf("read a parameter that was checked: %w", err)
		}
	}
	decisions, err := h.reader.Decisions(ctx, q)
	if err == nil && len(decisions) >= q.Limit {
		c.linkNext(inBefore, decisions[len(decisions)-1].DecidedAt.UTC().Format(time.RFC3339Nano))
	}
	return listed(decisions, err)
}

// linkNext points at the page that begins there (RFC 8288).
func (c *exchange) linkNext(name, value string) {
	next := url.Values{}
	for key, values := range c.query {
		next[key] = values
	}
	next.Set(name, value)
	c.header.Set("Link", "<"+(&url.URL{Path: c.request.URL.Path, RawQuery: next.Encode()}).String()+`>; rel="next"`)
}

func checkMany(ctx context.Context, h *HTTP, c *exchange) ([]byte, error) {
	b, err := decoded[checkBody](c)
	if err != nil {
		return nil, err
	}
	if err := h.known(ctx, c); err != nil {
		return nil, err
	}
	answers, err := h.reader.Check(ctx, c.workspace(), b.Checks)
	return viewed(checkAnswer{Checks: answers}, err)
}
