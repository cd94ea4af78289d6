package api

import (
	"context"
	"net/http"
	"time"

	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/enforcement/usage"
)

// Counting changes counters, each change once for a key. usage.Counters does.
type Counting interface {
	ConsumeOnce(ctx context.Context, once usage.Once, change usage.Change) (usage.Balance, error)
	ReleaseOnce(ctx context.Context, once usage.Once, change usage.Change) (usage.Balance, error)
}

// Holding knows the resources that a feature's units belong to, and which are locked.
// usage.Counters does.
type Holding interface {
	Resources(ctx context.Context, q usage.ResourceQuery) (usage.ResourcePage, error)
	Keep(ctx context.Context, workspace, feature string, resources []string) error
}

// Counter is both.
type Counter interface {
	Counting
	Holding
}

// changeBody is how many units, and whose.
type changeBody struct {
	Quantity   *int64    `json:"quantity,omitempty" minimum:"0" maximum:"9007199254740991" default:"1" example:"1" doc:"How many units; bytes for storage_bytes. 0 asks and changes nothing."`
	ResourceID string    `json:"resource_id,omitempty" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$" example:"project_7" doc:"Whose units these are, so that a downgrade can lock it."`
	CreatedAt  time.Time `json:"created_at,omitzero" doc:"When the resource was made, by which the oldest stay unlocked; now unless given. It counts when the resource is first seen."`
}

// balanceAnswer is the feature's counter after the change.
type balanceAnswer struct {
	Used      int64      `json:"used" minimum:"0" example:"4"`
	Limit     *int64     `json:"limit" minimum:"0" example:"5" doc:"null without a bound."`
	Unlimited bool       `json:"unlimited"`
	Remaining *int64     `json:"remaining" minimum:"0" example:"1" doc:"null without a bound; 0 when more is used than allowed."`
	ResetsAt  *time.Time `json:"resets_at" doc:"When a flow begins anew; null for a stock."`
}

func featureRoutes() []route {
	const feature = "/v1/workspaces/{workspace_id}/features/{feature}"
	return []route{
		{
			id: "consumeFeature", method: http.MethodPost, path: feature + "/consume", scope: ScopeExecute,
			summary:     "Take units of a feature",
			description: "Counts and checks at once. The reserved feature storage_bytes counts stored bytes. With an Idempotency-Key the units are taken once, and whoever asks again is told the same.",
			body:        typeOf[changeBody](), optional: true, answer: typeOf[balanceAnswer](), status: http.StatusOK, limited: true,
			problems: []string{problems.QuotaExceeded, problems.Storage, problems.PolicyViolation, problems.ResourceLocked, problems.NotEntitled},
			serve: func(ctx context.Context, h *HTTP, c *exchange) ([]byte, error) {
				return changeFeature(ctx, c, h.counters.ConsumeOnce)
			},
		},
		{
			id: "releaseFeature", method: http.MethodPost, path: feature + "/release", scope: ScopeExecute,
			summary:     "Give units of a feature back",
			description: "Never below 0. Giving back an unlocked resource unlocks the oldest locked one.",
			body:        typeOf[changeBody](), optional: true, answer: typeOf[balanceAnswer](), status: http.StatusOK, limited: true,
			problems: []string{problems.PolicyViolation, problems.NotEntitled},
			serve: func(ctx context.Context, h *HTTP, c *exchange) ([]byte, error) {
				return changeFeature(ctx, c, h.counters.ReleaseOnce)
			},
		},
	}
}

func changeFeature(
	ctx context.Context, c *exchange, change func(context.Context, usage.Once, usage.Change) (usage.Balance, error),
) ([]byte, error) {
	b, err := decoded[changeBody](c)
	if err != nil {
		return nil, err
	}
	quantity := int64(1)
	if b.Quantity != nil {
		quantity = *b.Quantity
	}
	balance, err := change(ctx, usage.Once{Scope: c.token.Name, Key: c.key}, usage.Change{
		WorkspaceID: c.workspace(), Feature: c.feature(), Quantity: quantity, ResourceID: b.ResourceID, CreatedAt: b.CreatedAt,
	})
	if err != nil {
		return nil, err
	}
	problems.SetRateLimit(c.header, quotaOfBalance(c.feature(), balance, c.now()))
	return encoded(balanceAnswer{
		Used: balance.Used, Limit: balance.Limit.Pointer(), Unlimited: balance.Limit.IsUnlimited(),
		Remaining: balance.Remaining(), ResetsAt: problems.InUTC(balance.ResetsAt),
	})
}
