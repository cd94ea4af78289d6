package subscriptions

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// amend writes an open row's new terms and, for each field that changed, an
// entry of the audit trail.
func amend(ctx context.Context, tx pgx.Tx, from, to Subscription, cause string) error {
	batch := &pgx.Batch{}
	batch.Queue(`UPDATE subscriptions SET plan_key = @plan_key, plan_revision = @plan_revision, snapshot = @snapshot,
			period_end = @period_end, "interval" = nullif(@interval, ''), anchor = @anchor
		WHERE id = @id::uuid`, pgx.NamedArgs{
		"id": to.ID, "plan_key": to.PlanKey, "plan_revision": to.PlanRevision, "snapshot": to.Snapshot,
		"period_end": to.PeriodEnd, "interval": to.Interval.String(), "anchor": to.anchorOrNull(),
	})
	for _, change := range diffText(subscriptionText(from), subscriptionText(to)) {
		batch.Queue(`INSERT INTO subscription_changes (subscription_id, at, field, old_value, new_value, cause)
			VALUES (@id::uuid, clock_timestamp(), @field, to_jsonb(nullif(@from, '')), to_jsonb(nullif(@to, '')), @cause)`,
			pgx.NamedArgs{"id": to.ID, "field": change.Field, "from": change.From, "to": change.To, "cause": cause})
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("amend period %s: %w", to.ID, err)
	}
	return nil
}

// subscriptionText is what an amendment can change, as text.
func subscriptionText(s Subscription) []text {
	list := []text{
		{"plan_key", s.PlanKey},
		{"plan_revision", strconv.FormatInt(s.PlanRevision, 10)},
	}
	list = append(list, termsText(s.Snapshot.Limits, s.Snapshot.Features)...)
	return append(list,
		text{"period_end", s.PeriodEnd.Format(time.RFC3339Nano)},
		text{"interval", s.Interval.String()},
		text{"anchor", s.Anchor.Format(time.RFC3339Nano)},
	)
}

// Change is an amendment of a running period.
type Change struct {
	// At is when it was written, UTC.
	At time.Time
	FieldChange
	// Cause is who or what asked for it.
	Cause string
}

// changeOf is a change with the row it belongs to.
type changeOf struct {
	Change
	subscription string
}

func scanChange(row pgx.CollectableRow) (changeOf, error) {
	var c changeOf
	err := row.Scan(&c.subscription, &c.At, &c.Field, &c.From, &c.To, &c.Cause)
	c.At = c.At.UTC()
	return c, err
}

func changesOf(ctx context.Context, q queryer, subscriptions []string) (map[string][]Change, error) {
	rows, err := q.Query(ctx, `SELECT subscription_id::text, at, field,
			coalesce(old_value #>> '{}', ''), coalesce(new_value #>> '{}', ''), cause
		FROM subscription_changes WHERE subscription_id = ANY(@ids::uuid[]) ORDER BY id`,
		pgx.NamedArgs{"ids": subscriptions})
	if err != nil {
		return nil, fmt.Errorf("read changes: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanChange)
	if err != nil {
		return nil, fmt.Errorf("read changes: %w", err)
	}
	changes := map[string][]Change{}
	for _, c := range found {
		changes[c.subscription] = append(changes[c.subscription], c.Change)
	}
	return changes, nil
}
