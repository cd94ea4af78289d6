package subscriptions

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
)

// tell puts the events of an outcome into the outbox: that the workspace is on another
// period, or that the subscription that it was on has ended, and that what was
// cached about it is old. What becomes of other subscriptions is nobody's news. The
// workspace is locked, so the order in which they are written is the one in which
// they are true.
func (o outcome) tell(batch *pgx.Batch, next lockedWorkspace) error {
	for _, data := range o.news(next.active) {
		if err := enqueue(batch, next.id, NewsRenewed, data); err != nil {
			return err
		}
	}
	if next.revision == o.workspace.revision {
		return nil
	}
	return enqueue(batch, next.id, NewsInvalidated, schemas.PlanInvalidated{
		WorkspaceID: next.id, PlanRevision: next.revision, Reason: o.reason(),
	})
}

// news are the end of the subscription that counted, and the period that counts from
// now on, whether it is new or was there beside it.
func (o outcome) news(active string) []schemas.SubscriptionRenewed {
	var news []schemas.SubscriptionRenewed
	was := o.workspace.active
	for _, action := range o.actions {
		if action.Verb == VerbClose && action.Row.isOrFollows(was) {
			news = append(news, ended(action.Row))
		}
	}
	for _, c := range o.open {
		if c.ID == active && active != was {
			news = append(news, renewed(c.Subscription))
		}
	}
	return news
}

// isOrFollows reports whether the row is the one of the id, or the held one after it.
func (s Subscription) isOrFollows(id string) bool {
	return id != "" && (s.ID == id || s.PreviousID != nil && *s.PreviousID == id)
}

// ended tells of the last period that it went on until the subscription ended. One that
// ended before that period began has had all of it, as far as anybody saw.
func ended(row Subscription) schemas.SubscriptionRenewed {
	news := renewed(row)
	news.Kind = KindEnded
	if row.EndedAt.After(row.PeriodStart) {
		news.PeriodEnd = *row.EndedAt
	}
	return news
}

func renewed(row Subscription) schemas.SubscriptionRenewed {
	return schemas.SubscriptionRenewed{
		WorkspaceID: row.WorkspaceID, SubscriptionID: row.ID, PreviousSubscriptionID: row.PreviousID,
		Kind: row.Kind, PlanKey: row.PlanKey, PlanRevision: row.PlanRevision,
		PeriodStart: row.PeriodStart, PeriodEnd: row.PeriodEnd,
	}
}

func (o outcome) reason() string {
	action := o.decisive()
	switch {
	case o.why != "":
		return o.why
	case o.assigned:
		return "assigned to plan " + action.Row.PlanKey
	case action.Verb == VerbInsert:
		return "subscription to plan " + action.Row.PlanKey + " began"
	case action.Verb == VerbRoll:
		return "period began: " + action.Row.Kind
	case action.Verb == VerbAmend:
		return "subscription changed"
	case action.Verb == VerbClose:
		return "subscription ended: " + action.Row.Status
	case action.Verb == VerbNone && len(o.actions) == 0:
		return "time passed: another subscription counts, or none"
	default:
		return "workspace was looked at again"
	}
}

func enqueue(batch *pgx.Batch, workspace, kind string, data any) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("make an event id: %w", err)
	}
	batch.Queue(`INSERT INTO outbox (id, workspace_id, subject_kind, body) VALUES (@id::uuid, @workspace, @kind, @body)`,
		pgx.NamedArgs{"id": id.String(), "workspace": workspace, "kind": kind, "body": data})
	return nil
}
