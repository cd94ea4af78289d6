package usage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// ConsumeAll adds many changes in the caller's transaction, all or nothing, in one
// statement however many features and workspaces they are of. The balances are in the
// order of the changes, each as the batch leaves its counter. The first change without
// room is the error, and nothing is counted; for the rest see Consume.
//
// Rows are locked in the order of their keys, so two batches never wait for each other.
func (c *Counters) ConsumeAll(ctx context.Context, tx pgx.Tx, changes []Change) ([]Balance, error) {
	for i, change := range changes {
		if err := change.check(); err != nil {
			return nil, fmt.Errorf("change %d: %w", i, err)
		}
	}
	if len(changes) == 0 {
		return []Balance{}, nil
	}
	for range staleAttempts + raceAttempts {
		all, err := c.termsOfAll(ctx, changes)
		if err != nil {
			return nil, err
		}
		for i, change := range changes {
			if err := all[i].resourceFault(change); err != nil {
				return nil, fmt.Errorf("change %d: %w", i, err)
			}
		}
		b := batchOf(all, changes)
		found, err := c.addAll(ctx, tx, b)
		if err != nil {
			return nil, err
		}
		readings := column(found, addedOne.reading)
		switch {
		case c.dropStale(ctx, b.terms, readings):
			continue
		case b.whole(found):
			return b.balances(all, found), c.tell(ctx, tx, b.reached(found))
		}
		if err := c.undo(ctx, tx, b, found); err != nil {
			return nil, err
		}
		if err := c.firstRefusal(ctx, tx, changes); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: counters change faster than they are read", ErrUnavailable)
}

// counterKey names a row of usage_counters.
type counterKey struct{ workspace, feature, epoch string }

func (t terms) key() counterKey { return counterKey{t.workspace, t.feature, t.epoch()} }

func compareKeys(a, b counterKey) int {
	return cmp.Or(cmp.Compare(a.workspace, b.workspace), cmp.Compare(a.feature, b.feature), cmp.Compare(a.epoch, b.epoch))
}

// batch is what changes add to each counter, in the order of the counters' keys.
type batch struct {
	terms      []terms
	quantities []int64
	registered []int64
	// rooms are the highest counts at which the quantities fit.
	rooms     []int64
	places    map[counterKey]int
	resources []resourceOf
	// known are the places in resources.
	known map[resourceKey]int
}

// resourceKey names a row of usage_resources.
type resourceKey struct{ workspace, feature, id string }

// resourceOf is an addition to a resource of a counter.
type resourceOf struct {
	workspace, feature string
	registration
}

func batchOf(all []terms, changes []Change) batch {
	b := batch{places: make(map[counterKey]int), known: make(map[resourceKey]int)}
	for _, t := range all {
		b.places[t.key()] = 0
	}
	for i, key := range slices.SortedFunc(maps.Keys(b.places), compareKeys) {
		b.places[key] = i
	}
	n := len(b.places)
	b.terms, b.quantities, b.registered, b.rooms = make([]terms, n), make([]int64, n), make([]int64, n), make([]int64, n)
	overflown := make([]bool, n)
	for i, change := range changes {
		at := b.places[all[i].key()]
		b.terms[at] = all[i]
		if overflown[at] = overflown[at] || change.Quantity > math.MaxInt64-b.quantities[at]; overflown[at] {
			continue
		}
		b.quantities[at] += change.Quantity
		b.addResource(at, change)
	}
	for i, t := range b.terms {
		if b.rooms[i] = t.room(b.quantities[i]); overflown[i] {
			b.rooms[i] = -1 // no limit is so high
		}
	}
	return b
}

// addResource keeps one entry for each resource: a statement can write a row once.
func (b *batch) addResource(at int, change Change) {
	if change.ResourceID == "" || change.Quantity == 0 {
		return
	}
	b.registered[at] += change.Quantity
	key := resourceKey{change.WorkspaceID, change.Feature, change.ResourceID}
	if i, known := b.known[key]; known {
		b.resources[i].quantity += change.Quantity
		return
	}
	b.known[key] = len(b.resources)
	b.resources = append(b.resources, resourceOf{
		change.WorkspaceID, change.Feature, registration{change.ResourceID, change.Quantity, change.createdAt()},
	})
}

// addedOne is what was found and done about one counter.
type addedOne struct {
	Fresh    bool
	Revision int64
	Written  *int64
	Untold   []int32
}

func (a addedOne) reading() reading { return reading{fresh: a.Fresh, revision: a.Revision} }

// addMany is addGuarded for many counters. Where somebody was faster at one of them,
// the others are written all the same: by then every row is locked.
const addMany = `
	WITH asked AS (
		SELECT a.*, p.revision AS current, coalesce(c.count, 0) AS seen,
			p.revision <= a.revision AND NOT EXISTS (
				SELECT FROM plan_revisions WHERE is_default AND revision > a.default_revision) AS fresh
		FROM unnest(@workspaces::text[], @features::text[], @epochs::text[], @starts::timestamptz[], @quantities::bigint[],
				@registered::bigint[], @rooms::bigint[], @limits::bigint[], @revisions::bigint[], @defaults::bigint[],
				@plan_epochs::text[], @near::bigint[], @full::bigint[])
			WITH ORDINALITY AS a (workspace_id, feature_key, usage_epoch, period_start, quantity,
				registered, room, limit_value, revision, default_revision, plan_epoch, near, full_at, place)
		CROSS JOIN LATERAL (SELECT coalesce((SELECT w.revision FROM workspaces w WHERE w.id = a.workspace_id), 0)) AS p (revision)
		LEFT JOIN LATERAL (SELECT count FROM usage_counters c WHERE c.workspace_id = a.workspace_id
			AND c.feature_key = a.feature_key AND c.usage_epoch = a.usage_epoch LIMIT 1) AS c ON true),
	written AS (
		INSERT INTO usage_counters AS c (workspace_id, feature_key, usage_epoch, period_start, count, registered)
		SELECT workspace_id, feature_key, usage_epoch, coalesce(period_start, '-infinity'), quantity, registered
		FROM asked WHERE quantity > 0 AND (SELECT bool_and(fresh AND seen <= room) FROM asked)
		ORDER BY place
		ON CONFLICT (workspace_id, feature_key, usage_epoch) DO UPDATE
			SET count = c.count + excluded.count, registered = c.registered + excluded.registered, updated_at = now()
			WHERE c.count <= (SELECT a.room FROM asked a WHERE a.workspace_id = c.workspace_id
				AND a.feature_key = c.feature_key AND a.usage_epoch = c.usage_epoch)
		RETURNING workspace_id, feature_key, usage_epoch, count),
	noted AS (
		INSERT INTO usage_resources AS r (workspace_id, feature_key, resource_id, quantity, created_at)
		SELECT t.workspace_id, t.feature_key, t.id, t.quantity, coalesce(t.created_at, clock_timestamp())
		FROM unnest(@of::text[], @stocks::text[], @ids::text[], @shares::bigint[], @created::timestamptz[])
			AS t (workspace_id, feature_key, id, quantity, created_at)
		WHERE (SELECT count(*) FROM written) = (SELECT count(*) FROM asked WHERE quantity > 0)
		ON CONFLICT (workspace_id, feature_key, resource_id) DO UPDATE SET quantity = r.quantity + excluded.quantity)
	SELECT a.fresh, a.current, CASE WHEN a.quantity = 0 AND a.seen <= a.room THEN a.seen ELSE w.count END,
		CASE WHEN w.count >= a.near THEN (
			SELECT array_agg(p.percent ORDER BY p.percent)
			FROM (VALUES (80, a.near), (100, a.full_at)) AS p (percent, at)
			WHERE w.count >= p.at AND NOT EXISTS (
				SELECT FROM usage_thresholds t
				WHERE t.workspace_id = a.workspace_id AND t.usage_epoch = a.plan_epoch AND t.limit_name = a.feature_key
					AND t.limit_value = a.limit_value AND t.percent = p.percent)) END
	FROM asked a LEFT JOIN written w USING (workspace_id, feature_key, usage_epoch)
	ORDER BY a.place`

func (c *Counters) addAll(ctx context.Context, tx pgx.Tx, b batch) ([]addedOne, error) {
	args := b.args()
	args["starts"] = column(b.terms, terms.periodStart)
	args["rooms"] = b.rooms
	args["limits"] = column(b.terms, func(t terms) *int64 { return t.limit.Pointer() })
	args["revisions"] = column(b.terms, func(t terms) int64 { return t.plan.Revision })
	args["defaults"] = column(b.terms, terms.defaultRevision)
	args["plan_epochs"] = column(b.terms, func(t terms) string { return t.plan.UsageEpoch })
	args["near"] = column(b.terms, func(t terms) *int64 { return t.threshold(near) })
	args["full"] = column(b.terms, func(t terms) *int64 { return t.threshold(full) })
	args["of"] = column(b.resources, func(r resourceOf) string { return r.workspace })
	args["stocks"] = column(b.resources, func(r resourceOf) string { return r.feature })
	args["ids"] = column(b.resources, func(r resourceOf) string { return r.id })
	args["shares"] = column(b.resources, func(r resourceOf) int64 { return r.quantity })
	args["created"] = column(b.resources, func(r resourceOf) *time.Time { return r.created })
	rows, err := tx.Query(ctx, addMany, args)
	if err != nil {
		return nil, fmt.Errorf("count %d features: %w", len(b.terms), err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[addedOne])
	if err != nil {
		return nil, fmt.Errorf("count %d features: %w", len(b.terms), err)
	}
	return found, nil
}

func (b batch) args() pgx.NamedArgs {
	return pgx.NamedArgs{
		"workspaces": column(b.terms, func(t terms) string { return t.workspace }),
		"features":   column(b.terms, func(t terms) string { return t.feature }),
		"epochs":     column(b.terms, terms.epoch),
		"quantities": b.quantities, "registered": b.registered,
	}
}

// whole reports whether every counter was written, or had room where there was nothing
// to write.
func (b batch) whole(found []addedOne) bool {
	return !slices.ContainsFunc(found, func(a addedOne) bool { return a.Written == nil })
}

func (b batch) balances(all []terms, found []addedOne) []Balance {
	return column(all, func(t terms) Balance { return t.balance(*found[b.places[t.key()]].Written) })
}

func (b batch) reached(found []addedOne) []sighting {
	var all []sighting
	for i, a := range found {
		for _, percent := range a.Untold {
			all = append(all, sighting{terms: b.terms[i], percent: int(percent), used: *a.Written})
		}
	}
	return all
}

// undo takes back what a batch wrote that is not whole. No savepoint is needed: the rows
// are locked since, and the next try decides.
func (c *Counters) undo(ctx context.Context, tx pgx.Tx, b batch, found []addedOne) error {
	part := batch{}
	for i, a := range found {
		if a.Written != nil && b.quantities[i] > 0 {
			part.terms = append(part.terms, b.terms[i])
			part.quantities, part.registered = append(part.quantities, b.quantities[i]), append(part.registered, b.registered[i])
		}
	}
	if len(part.terms) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		UPDATE usage_counters c SET count = c.count - a.quantity, registered = c.registered - a.registered
		FROM unnest(@workspaces::text[], @features::text[], @epochs::text[], @quantities::bigint[], @registered::bigint[])
			AS a (workspace_id, feature_key, usage_epoch, quantity, registered)
		WHERE (c.workspace_id, c.feature_key, c.usage_epoch) = (a.workspace_id, a.feature_key, a.usage_epoch)`, part.args())
	if err != nil {
		return fmt.Errorf("take back a part of %d features: %w", len(b.terms), err)
	}
	return nil
}

// firstRefusal finds the change for which there is no room after those before it; nil
// where there is room by now.
func (c *Counters) firstRefusal(ctx context.Context, tx pgx.Tx, changes []Change) error {
	all, seen, err := c.lookFresh(ctx, tx, changes)
	if err != nil {
		return err
	}
	used := make(map[counterKey]int64)
	for i, change := range changes {
		key := all[i].key()
		if _, met := used[key]; !met {
			used[key] = seen[i].Used
		}
		if used[key] > all[i].room(change.Quantity) {
			return all[i].refusal(change, finding{used[key], seen[i].Locked})
		}
		used[key] += change.Quantity
	}
	return nil
}
