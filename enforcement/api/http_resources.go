package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/headroomhq/headroom/enforcement/usage"
)

// resourceView is one resource of a feature.
type resourceView struct {
	ResourceID string    `json:"resource_id" example:"project_7"`
	Quantity   int64     `json:"quantity" minimum:"0" example:"1" doc:"How many units are its."`
	CreatedAt  time.Time `json:"created_at"`
	Locked     bool      `json:"locked" doc:"Whether it is one of those beyond what the plan allows."`
}

// keepBody is what a workspace chooses to go on with.
type keepBody struct {
	ResourceIDs []resourceID `json:"resource_ids" maxItems:"1000" nullable:"false" doc:"What stays unlocked before all others, the most important first; none takes the choice back."`
}

// resourceID is an id that the document describes as one.
type resourceID string

// Schema is for huma, which knows no pattern of a list's elements.
func (resourceID) Schema(huma.Registry) *huma.Schema { return idSchema() }

const (
	defaultResources = 100
	maxResources     = 1000
)

func resourceRoutes() []route {
	const resources = "/v1/workspaces/{workspace_id}/features/{feature}/resources"
	return []route{
		{
			id: "listResources", method: http.MethodGet, path: resources, scope: ScopeRead,
			summary:     "The resources of a feature, and which of them are locked",
			description: "A page ends with a Link to the next one, if there is more.",
			answer:      typeOf[[]resourceView](), status: http.StatusOK, paged: true,
			query: []parameter{
				limitParameter(defaultResources, maxResources),
				{name: inAfter, schema: idSchema(), doc: "Only what comes after this resource.", check: checkID},
			},
			problems: []string{slugPolicy, slugNotEntitled},
			serve:    listResources,
		},
		{
			id: "keepResources", method: http.MethodPut, path: resources + "/keep", scope: ScopeAdmin,
			summary:     "Choose which resources stay unlocked",
			description: "In place of the oldest. It replaces an earlier choice, and counts for every downgrade from then on.",
			body:        typeOf[keepBody](), status: http.StatusNoContent,
			problems: []string{slugPolicy, slugNotEntitled},
			serve:    keepResources,
		},
	}
}

func listResources(ctx context.Context, h *HTTP, c *call) ([]byte, error) {
	page, err := h.counters.Resources(ctx, usage.ResourceQuery{
		WorkspaceID: c.workspace(), Feature: c.feature(), After: c.query.Get(inAfter), Limit: c.number(inLimit, defaultResources),
	})
	if err != nil {
		return nil, err
	}
	if page.Next != "" {
		c.linkNext(inAfter, page.Next)
	}
	views := make([]resourceView, len(page.Resources))
	for i, r := range page.Resources {
		views[i] = resourceView{ResourceID: r.ResourceID, Quantity: r.Quantity, CreatedAt: r.CreatedAt.UTC(), Locked: r.Locked}
	}
	return encoded(views)
}

func keepResources(ctx context.Context, h *HTTP, c *call) ([]byte, error) {
	b, err := decoded[keepBody](c)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(b.ResourceIDs))
	for i, id := range b.ResourceIDs {
		ids[i] = string(id)
	}
	return nil, h.counters.Keep(ctx, c.workspace(), c.feature(), ids)
}
