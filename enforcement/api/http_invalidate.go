package api

import (
	"context"
	"net/http"
)

// Invalidator makes every instance read a workspace's plan again.
type Invalidator interface {
	// Invalidate returns the workspace's new revision, 0 for one that is not known,
	// after the commit. The reason travels with the news.
	Invalidate(ctx context.Context, workspace, reason string) (revision int64, err error)
}

// invalidateBody says why.
type invalidateBody struct {
	Reason string `json:"reason,omitempty" maxLength:"200" pattern:"^[^\\x00]*$" example:"price changed by hand" doc:"Travels with the news."`
}

// invalidateAnswer is what came of it.
type invalidateAnswer struct {
	WorkspaceID string `json:"workspace_id"`
	Revision    int64  `json:"revision" doc:"The workspace's revision; 0 for one that is not known."`
}

func invalidateRoutes() []route {
	invalidate := route{
		method: http.MethodPost, scope: ScopeAdmin,
		summary:     "Have every instance read a workspace's plan again",
		description: "Headroom does so by itself for every change it makes; this is for a change made behind its back. The news is broadcast after the commit.",
		body:        typeOf[invalidateBody](), optional: true, answer: typeOf[invalidateAnswer](), status: http.StatusAccepted,
		serve: invalidatePlan,
	}
	first, second := invalidate, invalidate
	first.id, first.path = "invalidateWorkspace", "/v1/workspaces/{workspace_id}/invalidate"
	second.id, second.path = "invalidatePlan", "/api/core/invalidate-plan/{workspace_id}"
	return []route{first, second}
}

func invalidatePlan(ctx context.Context, h *HTTP, c *exchange) ([]byte, error) {
	b, err := decoded[invalidateBody](c)
	if err != nil {
		return nil, err
	}
	if b.Reason == "" {
		b.Reason = "asked for by " + c.token.Name
	}
	if err := h.known(ctx, c); err != nil {
		return nil, err
	}
	revision, err := h.invalidator.Invalidate(ctx, c.workspace(), b.Reason)
	return viewed(invalidateAnswer{WorkspaceID: c.workspace(), Revision: revision}, err)
}
