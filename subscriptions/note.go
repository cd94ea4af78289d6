package subscriptions

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// NoteIn writes into the audit trail of a subscription's newest period what happened to
// it and changes nothing about it: a refund, a dispute. What the trail has last of the
// field already is not written again. It does nothing for a subscription without a
// period. The caller holds the workspace's row, as after FollowIn.
func (s *Store) NoteIn(ctx context.Context, tx pgx.Tx, key SubscriptionKey, note Note) error {
	_, err := tx.Exec(ctx, `WITH period AS (
			SELECT id FROM subscriptions WHERE source = @source AND account = @account
				AND livemode = @livemode AND source_id = @source_id
			ORDER BY period_start DESC LIMIT 1
		), last AS (
			SELECT c.new_value FROM subscription_changes c JOIN subscriptions s ON s.id = c.subscription_id
			WHERE s.source = @source AND s.account = @account AND s.livemode = @livemode
				AND s.source_id = @source_id AND c.field = @field
			ORDER BY c.id DESC LIMIT 1)
		INSERT INTO subscription_changes (subscription_id, at, field, old_value, new_value, cause)
		SELECT id, clock_timestamp(), @field, (SELECT new_value FROM last), to_jsonb(@value::text), @cause
		FROM period WHERE (SELECT new_value FROM last) IS DISTINCT FROM to_jsonb(@value::text)`,
		pgx.NamedArgs{
			"source": key.Source, "account": key.Account, "livemode": key.Livemode, "source_id": key.SourceID,
			"field": note.Field, "value": note.Value, "cause": note.Cause,
		})
	if err != nil {
		return fmt.Errorf("note %s of subscription %s: %w", note.Field, key.SourceID, err)
	}
	return nil
}

// Note is an entry of the audit trail that comes with no change of a period.
type Note struct {
	// Field names what it is about, such as the refund of a charge; Value is how that
	// stands now.
	Field, Value string
	// Cause is who or what told of it.
	Cause string
}
