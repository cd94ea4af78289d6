package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/enforcement/usage"
)

// resourcesAnswer is a page of a feature's resources, and how they stand to its limit.
type resourcesAnswer struct {
	WorkspaceID string         `json:"workspace_id"`
	Feature     string         `json:"feature"`
	PlanKey     string         `json:"plan_key"`
	Used        int64          `json:"used" doc:"How many units there are."`
	Loose       int64          `json:"loose" doc:"How many of them are no resource's."`
	Limit       *int64         `json:"limit" minimum:"0" doc:"null without a bound."`
	Unlimited   bool           `json:"unlimited"`
	Resources   []resourceView `json:"resources" nullable:"false" doc:"In the order in which they stay unlocked: as chosen, then the oldest."`
}

// resourceView is one resource of a feature.
type resourceView struct {
	ResourceID string    `json:"resource_id" example:"project_7"`
	Quantity   int64     `json:"quantity" minimum:"0" example:"1" doc:"How many units are its."`
	CreatedAt  time.Time `json:"created_at"`
	Kept       int       `json:"kept" minimum:"0" doc:"Its place in the workspace's choice, from 1; 0 where it was not chosen."`
	Locked     bool      `json:"locked" doc:"Whether it is one of those beyond what the plan allows."`
	Reason     string    `json:"reason,omitempty" doc:"Why it is locked, and what unlocks it."`
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
			answer:      typeOf[resourcesAnswer](), status: http.StatusOK, paged: true,
			query: []parameter{
				limitParameter(defaultResources, maxResources),
				{name: inAfter, schema: &huma.Schema{Type: huma.TypeString}, doc: "Where the page before ended: from its Link.", check: anything},
			},
			problems: []string{problems.NotEntitled},
			serve:    listResources,
		},
		{
			id: "keepResources", method: http.MethodPut, path: resources + "/keep", scope: ScopeAdmin,
			summary:     "Choose which resources stay unlocked",
			description: "In place of the oldest. It replaces an earlier choice, and counts for every downgrade from then on.",
			body:        typeOf[keepBody](), status: http.StatusNoContent,
			serve: keepResources,
		},
	}
}

func listResources(ctx context.Context, h *HTTP, c *exchange) ([]byte, error) {
	page, err := h.counters.Resources(ctx, usage.ResourceQuery{
		WorkspaceID: c.workspace(), Feature: c.feature(), After: c.query.Get(inAfter), Limit: c.number(inLimit, defaultResources),
	})
	if err != nil {
		return nil, err
	}
	if page.Next != "" {
		c.linkNext(inAfter, page.Next)
	}
	answer := resourcesAnswer{
		WorkspaceID: c.workspace(), Feature: c.feature(), PlanKey: page.PlanKey, Used: page.Used, Loose: page.Loose,
		Limit: page.Limit.Pointer(), Unlimited: page.Limit.IsUnlimited(), Resources: make([]resourceView, len(page.Resources)),
	}
	for i, r := range page.Resources {
		answer.Resources[i] = resourceView{
			ResourceID: r.ID, Quantity: r.Quantity, CreatedAt: r.CreatedAt.UTC(), Kept: r.Kept, Locked: r.Locked,
		}
		if reason := page.Reason(r); reason != nil {
			answer.Resources[i].Reason = reason.Error()
		}
	}
	return encoded(answer)
}

// anything is for a parameter whose meaning others judge.
func anything(string) string { return "" }

func keepResources(ctx context.Context, h *HTTP, c *exchange) ([]byte, error) {
	b, err := decoded[keepBody](c)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(b.ResourceIDs))
	for i, id := range b.ResourceIDs {
		ids[i] = string(id)
	}
	err = h.counters.Keep(ctx, c.workspace(), c.feature(), ids)
	if wrong := new(usage.InvalidArgument); errors.As(err, &wrong) && wrong.Field == "resources" {
		return nil, problems.InvalidRequest(problems.FieldFault{Field: "resource_ids", Detail: wrong.Detail}) // as it is called here
	}
	return nil, err
}
