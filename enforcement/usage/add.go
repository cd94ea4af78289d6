package usage

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// addition is so much more for one counter, all or nothing.
type addition struct {
	quantity int64
	// resources have different ids. Of one alone it is told whether it is locked.
	resources []registration
}

// registration is how much of an addition becomes a resource's.
type registration struct {
	id       string
	quantity int64
	// created is NULL for the database's clock.
	created *time.Time
}

// added is what the statement of an addition found and did.
type added struct {
	Fresh    bool
	Revision int64
	// Seen is the count before, when the statement began.
	Seen int64
	// Written is the count after, nil where nothing was added.
	Written *int64
	// Untold are the thresholds reached that nobody was told of, lowest first.
	Untold []int32
	// Locked is whether the resource was.
	Locked bool
}

func (a added) reading() reading { return reading{fresh: a.Fresh, revision: a.Revision} }

// askCounter reads the plan's revision and the counter, in one snapshot.
const askCounter = `
	WITH asked AS (
		SELECT p.revision, coalesce(c.count, 0) AS seen, coalesce(c.registered, 0) AS registered,
			p.revision <= @revision::bigint AND NOT EXISTS (
				SELECT FROM plan_revisions WHERE is_default AND revision > @default_revision::bigint) AS fresh
		FROM (SELECT coalesce((SELECT revision FROM workspaces WHERE id = @workspace::text), 0)) AS p (revision)
		LEFT JOIN usage_counters c
			ON c.workspace_id = @workspace::text AND c.feature_key = @feature::text AND c.usage_epoch = @epoch::text)`

// addGuarded adds where there is room, whether the row exists or not. The first WHERE
// looks at the snapshot: it refuses without locking the row, and so without waiting. The
// second one looks at the row as those who held it have left it.
const addGuarded = askCounter + `, written AS (
		INSERT INTO usage_counters AS c (workspace_id, feature_key, usage_epoch, period_start, count, registered)
		SELECT @workspace::text, @feature::text, @epoch::text, coalesce(@period_start::timestamptz, '-infinity'),
			@quantity::bigint, @registered::bigint
		FROM asked WHERE fresh AND @quantity::bigint > 0 AND seen <= @room::bigint
		ON CONFLICT (workspace_id, feature_key, usage_epoch) DO UPDATE
			SET count = c.count + excluded.count, registered = c.registered + excluded.registered, updated_at = now()
			WHERE c.count <= @room::bigint
		RETURNING count)`

// noteResources runs after the counter's row is locked, for it reads what was written.
const noteResources = `, noted AS (
		INSERT INTO usage_resources AS r (workspace_id, feature_key, resource_id, quantity, created_at)
		SELECT @workspace::text, @feature::text, t.id, t.quantity, coalesce(t.created_at, clock_timestamp())
		FROM written, unnest(@ids::text[], @quantities::bigint[], @created::timestamptz[]) AS t (id, quantity, created_at)
		ON CONFLICT (workspace_id, feature_key, resource_id) DO UPDATE SET quantity = r.quantity + excluded.quantity)`

// added is the result; the thresholds are looked for only where the first one is reached.
const tellAdded = `
	SELECT fresh, asked.revision, seen, w.count,
		CASE WHEN w.count >= @near::bigint THEN (
			SELECT array_agg(p.percent ORDER BY p.percent)
			FROM (VALUES (80, @near::bigint), (100, @full::bigint)) AS p (percent, at)
			WHERE w.count >= p.at AND NOT EXISTS (
				SELECT FROM usage_thresholds t
				WHERE t.workspace_id = @workspace::text AND t.usage_epoch = @plan_epoch::text AND t.limit_name = @feature::text
					AND t.limit_value = @limit::bigint AND t.percent = p.percent)) END,
	`

const (
	addLoose      = addGuarded + tellAdded + `false FROM asked LEFT JOIN written w ON true`
	addRegistered = addGuarded + noteResources + tellAdded + `coalesce(` + isLocked + `, false) FROM asked
		CROSS JOIN (SELECT @workspace::text AS workspace_id, @feature::text AS feature_key,
			@resource::text AS resource_id, @limit::bigint AS limit_value) AS a
		LEFT JOIN written w ON true`
)

// isLocked is whether the resource that a names is beyond the limit: NULL where it is not
// registered. Nothing is locked where no more is used than allowed, and then nothing is
// added up. Else the units up to the resource are, or those after it, whichever can be
// told from fewer rows: a row has a unit at least. Both begin at the resource, for
// a row value that only ends a scan of the index does not end it early.
const isLocked = `CASE WHEN asked.seen > a.limit_value THEN (
		SELECT CASE WHEN a.limit_value < asked.seen - a.limit_value THEN
			asked.seen - asked.registered + (SELECT sum(upto.quantity) FROM (
				SELECT q.quantity FROM usage_resources q
				WHERE q.workspace_id = r.workspace_id AND q.feature_key = r.feature_key
					AND (q.keep_rank, q.created_at, q.resource_id) <= (r.keep_rank, r.created_at, r.resource_id)
				ORDER BY q.keep_rank DESC, q.created_at DESC, q.resource_id DESC LIMIT a.limit_value + 1) AS upto) > a.limit_value
		ELSE
			(SELECT coalesce(sum(after.quantity), 0) FROM (
				SELECT q.quantity FROM usage_resources q
				WHERE q.workspace_id = r.workspace_id AND q.feature_key = r.feature_key
					AND (q.keep_rank, q.created_at, q.resource_id) > (r.keep_rank, r.created_at, r.resource_id)
				ORDER BY q.keep_rank, q.created_at, q.resource_id LIMIT asked.seen - a.limit_value) AS after) < asked.seen - a.limit_value
		END FROM usage_resources r
		WHERE r.workspace_id = a.workspace_id AND r.feature_key = a.feature_key AND r.resource_id = a.resource_id) END`

// add makes an addition where the terms are current and leave room for all of it.
func (c *Counters) add(ctx context.Context, tx pgx.Tx, t terms, a addition) (added, error) {
	args, statement := t.args(), addLoose
	args["period_start"], args["quantity"], args["registered"], args["room"] = t.periodStart(), a.quantity, int64(0), t.room(a.quantity)
	args["near"], args["full"], args["plan_epoch"] = t.threshold(near), t.threshold(full), t.plan.UsageEpoch
	if len(a.resources) > 0 {
		statement = addRegistered
		a.register(args)
	}
	rows, err := tx.Query(ctx, statement, args)
	if err != nil {
		return added{}, fmt.Errorf("count %s of workspace %s: %w", t.feature, t.workspace, err)
	}
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[added])
	if err != nil {
		return added{}, fmt.Errorf("count %s of workspace %s: %w", t.feature, t.workspace, err)
	}
	return got, nil
}

func (a addition) register(args pgx.NamedArgs) {
	ids, quantities := make([]string, 0, len(a.resources)), make([]int64, 0, len(a.resources))
	created, sum := make([]*time.Time, 0, len(a.resources)), int64(0)
	for _, r := range a.resources {
		ids, quantities, created = append(ids, r.id), append(quantities, r.quantity), append(created, r.created)
		sum += r.quantity
	}
	args["ids"], args["quantities"], args["created"], args["registered"] = ids, quantities, created, sum
	args["resource"] = ""
	if len(ids) == 1 {
		args["resource"] = ids[0]
	}
}

// args name the counter and the reading of the plan.
func (t terms) args() pgx.NamedArgs {
	return pgx.NamedArgs{
		"workspace": t.workspace, "feature": t.feature, "epoch": t.epoch(), "limit": t.limit.Pointer(),
		"revision": t.plan.Revision, "default_revision": t.defaultRevision(),
	}
}

// reached are the thresholds to tell of.
func (a added) reached(t terms) []sighting {
	var all []sighting
	for _, percent := range a.Untold {
		all = append(all, sighting{terms: t, percent: int(percent), used: *a.Written})
	}
	return all
}
