package usage

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/subscriptions"
)

// Release gives units back in the caller's transaction. It gives back no more than there
// is, and never fails for that: of the resource that is named, which is forgotten at 0, or
// without one of the units that belong to no resource. A feature that is no
// longer in the plan is given back all the same. A flow gives back to the running period,
// and has no resources: to name one is an *InvalidArgument.
//
// What it does with transactions, isolation levels and errors is as with Consume.
func (c *Counters) Release(ctx context.Context, tx pgx.Tx, change Change) (Balance, error) {
	return c.inTransaction(ctx, change, func(t terms) (Balance, reading, error) { return c.release(ctx, tx, t, change) })
}

// released is what a release found and left.
type released struct {
	Fresh    bool
	Revision int64
	Used     int64
}

// releaseLoose leaves the resources their units.
const releaseLoose = askCounter + `, given AS (
		UPDATE usage_counters c SET count = c.count - least(@quantity::bigint, c.count - c.registered), updated_at = now()
		FROM asked
		WHERE asked.fresh AND @quantity::bigint > 0
			AND c.workspace_id = @workspace::text AND c.feature_key = @feature::text AND c.usage_epoch = @epoch::text
		RETURNING c.count)
	SELECT fresh, revision, coalesce((SELECT count FROM given), seen) FROM asked`

// releaseHeld runs in a snapshot that was taken after the counter's row was locked: what
// it reads of the resource nobody changes.
const releaseHeld = askCounter + `, held AS (
		SELECT r.resource_id, r.quantity, least(r.quantity, @quantity::bigint) AS given FROM usage_resources r, asked
		WHERE asked.fresh AND @quantity::bigint > 0
			AND r.workspace_id = @workspace::text AND r.feature_key = @feature::text AND r.resource_id = @resource::text),
	reduced AS (
		UPDATE usage_resources r SET quantity = r.quantity - held.given FROM held
		WHERE held.given < held.quantity
			AND r.workspace_id = @workspace::text AND r.feature_key = @feature::text AND r.resource_id = held.resource_id),
	forgotten AS (
		DELETE FROM usage_resources r USING held
		WHERE held.given = held.quantity
			AND r.workspace_id = @workspace::text AND r.feature_key = @feature::text AND r.resource_id = held.resource_id),
	given AS (
		UPDATE usage_counters c SET count = c.count - held.given, registered = c.registered - held.given, updated_at = now()
		FROM held
		WHERE c.workspace_id = @workspace::text AND c.feature_key = @feature::text AND c.usage_epoch = @epoch::text
		RETURNING c.count)
	SELECT fresh, revision, coalesce((SELECT count FROM given), seen) FROM asked`

const lockCounter = `SELECT FROM usage_counters
	WHERE workspace_id = @workspace::text AND feature_key = @feature::text AND usage_epoch = @epoch::text FOR NO KEY UPDATE`

// release tries a change on a reading of the plan, which may turn out not to be fresh.
func (c *Counters) release(ctx context.Context, tx pgx.Tx, t terms, change Change) (Balance, reading, error) {
	if t.unknown || t.kind == subscriptions.FeatureBoolean {
		return Balance{}, reading{}, t.violation()
	}
	if err := t.resourceFault(change); err != nil {
		return Balance{}, reading{}, err
	}
	args := t.args()
	args["quantity"], args["resource"] = change.Quantity, change.ResourceID
	var got released
	collect := func(rows pgx.Rows) error {
		var err error
		got, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[released])
		return err
	}
	batch := &pgx.Batch{}
	if change.ResourceID == "" {
		batch.Queue(releaseLoose, args).Query(collect)
	} else {
		batch.Queue(lockCounter, args)
		batch.Queue(releaseHeld, args).Query(collect)
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return Balance{}, reading{}, fmt.Errorf("give back %s of workspace %s: %w", t.feature, t.workspace, err)
	}
	return t.balance(got.Used), reading{fresh: got.Fresh, revision: got.Revision}, nil
}
