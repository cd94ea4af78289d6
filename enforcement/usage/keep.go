package usage

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
)

// Keep is the workspace's choice of which resources of a feature stay unlocked, in this
// order, before all others. It replaces the choice before; an empty one leaves the
// oldest unlocked. More than the limit may be chosen: the last of them are locked then. It
// counts from its return on.
//
// A resource that is named twice or is not registered is an *InvalidArgument, and
// nothing is changed.
func (c *Counters) Keep(ctx context.Context, workspace, feature string, resources []string) error {
	if err := checkNames(workspace, feature); err != nil {
		return err
	}
	chosen := make(map[string]bool, len(resources))
	for _, id := range resources {
		switch {
		case !schemas.ValidID(id):
			return &InvalidArgument{"resources", idRule}
		case chosen[id]:
			return &InvalidArgument{"resources", "names " + id + " twice"}
		}
		chosen[id] = true
	}
	err := c.transact(ctx, func(tx pgx.Tx) error {
		return keep(ctx, tx, pgx.NamedArgs{
			"workspace": workspace, "feature": feature, "epoch": "", "ids": resources,
		})
	})
	if errors.As(err, new(*InvalidArgument)) {
		return err
	}
	if err != nil {
		return fmt.Errorf("keep %s of workspace %s: %w", feature, workspace, unavailable(err))
	}
	return nil
}

// keepInOrder writes the rows whose place changes, and no others.
const keepInOrder = `
	UPDATE usage_resources r SET keep_rank = chosen.rank
	FROM (SELECT o.resource_id, coalesce(t.place, 2147483647)::integer AS rank
		FROM usage_resources o LEFT JOIN unnest(@ids::text[]) WITH ORDINALITY AS t (id, place) ON t.id = o.resource_id
		WHERE o.workspace_id = @workspace::text AND o.feature_key = @feature::text) AS chosen
	WHERE r.workspace_id = @workspace::text AND r.feature_key = @feature::text AND r.resource_id = chosen.resource_id
		AND r.keep_rank <> chosen.rank`

// keep writes under the lock of the counter's row, as all who change resources do.
func keep(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs) error {
	if _, err := tx.Exec(ctx, lockCounter, args); err != nil {
		return fmt.Errorf("lock the counter: %w", err)
	}
	rows, err := tx.Query(ctx, `
		SELECT t.id FROM unnest(@ids::text[]) WITH ORDINALITY AS t (id, place)
		WHERE NOT EXISTS (SELECT FROM usage_resources r
			WHERE r.workspace_id = @workspace::text AND r.feature_key = @feature::text AND r.resource_id = t.id)
		ORDER BY t.place LIMIT 1`, args)
	if err != nil {
		return fmt.Errorf("read the resources: %w", err)
	}
	unknown, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("read the resources: %w", err)
	}
	if len(unknown) > 0 {
		return &InvalidArgument{"resources", "names " + unknown[0] + ", which is not registered"}
	}
	if _, err := tx.Exec(ctx, keepInOrder, args); err != nil {
		return fmt.Errorf("write the order: %w", err)
	}
	return nil
}
