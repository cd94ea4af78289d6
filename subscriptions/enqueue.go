package subscriptions

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Enqueue puts news into the outbox, in the order given, to be published after the
// transaction has committed, and not at all if it does not. Each needs a
// WorkspaceID, a Kind and a Body; the rest is the outbox's to give. An error has
// spoilt the transaction.
//
// News that other news of the workspace must follow in order are written under the lock
// of the workspace's row, as those of plans and periods are. Where the order
// against those is of no matter, as for thresholds, the lock may be left out.
func Enqueue(ctx context.Context, tx pgx.Tx, news ...News) error {
	if len(news) == 0 {
		return nil
	}
	ids, workspaces := make([]string, len(news)), make([]string, len(news))
	kinds, bodies := make([]string, len(news)), make([]string, len(news))
	for i, n := range news {
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("make an event id: %w", err)
		}
		ids[i], workspaces[i], kinds[i], bodies[i] = id.String(), n.WorkspaceID, n.Kind, string(n.Body)
	}
	_, err := tx.Exec(ctx, `INSERT INTO outbox (id, workspace_id, subject_kind, body)
		SELECT id::uuid, workspace_id, kind, body::jsonb
		FROM unnest(@ids::text[], @workspaces::text[], @kinds::text[], @bodies::text[])
			WITH ORDINALITY AS t (id, workspace_id, kind, body, place)
		ORDER BY place`,
		pgx.NamedArgs{"ids": ids, "workspaces": workspaces, "kinds": kinds, "bodies": bodies})
	if err != nil {
		return fmt.Errorf("write %s into the outbox: %w", news[0].Kind, err)
	}
	return nil
}
