package subscriptions

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
)

// notice is what is told of a transition besides its action.
type notice struct {
	workspace             lockedWorkspace
	invalidated, assigned bool
}

// tell puts the events of a transition into the outbox: that there is a new
// period, and that what was cached about the workspace is old. The workspace is
// locked, so the order in which they are written is the one in which they are true.
func tell(ctx context.Context, tx pgx.Tx, action Action, n notice) error {
	if action.Verb == VerbInsert || action.Verb == VerbRoll {
		if err := enqueue(ctx, tx, n.workspace.id, NewsRenewed, renewed(action.Row)); err != nil {
			return err
		}
	}
	if !n.invalidated {
		return nil
	}
	return enqueue(ctx, tx, n.workspace.id, NewsInvalidated, schemas.PlanInvalidated{
		WorkspaceID: n.workspace.id, PlanRevision: n.workspace.revision, Reason: n.reason(action),
	})
}

func renewed(row Subscription) schemas.SubscriptionRenewed {
	return schemas.SubscriptionRenewed{
		WorkspaceID: row.WorkspaceID, SubscriptionID: row.ID, PreviousSubscriptionID: row.PreviousID,
		Kind: row.Kind, PlanKey: row.PlanKey, PlanRevision: row.PlanRevision,
		PeriodStart: row.PeriodStart, PeriodEnd: row.PeriodEnd,
	}
}

func (n notice) reason(action Action) string {
	switch {
	case n.assigned:
		return "assigned to plan " + action.Row.PlanKey
	case action.Verb == VerbInsert:
		return "subscription to plan " + action.Row.PlanKey + " began"
	case action.Verb == VerbRoll:
		return "period began: " + action.Row.Kind
	case action.Verb == VerbAmend:
		return "subscription changed"
	case action.Verb == VerbClose:
		return "subscription ended: " + action.Row.Status
	default:
		return "workspace was looked at again"
	}
}

func enqueue(ctx context.Context, tx pgx.Tx, workspace, kind string, data any) error {
	body, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("write %s into the outbox: %w", kind, err)
	}
	return Enqueue(ctx, tx, News{WorkspaceID: workspace, Kind: kind, Body: body})
}
