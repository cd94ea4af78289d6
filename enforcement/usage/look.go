package usage

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/subscriptions"
)

// queryer is a pool or a transaction.
type queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// sight is a counter as a change would meet it.
type sight struct {
	Place    int64
	Fresh    bool
	Revision int64
	Used     int64
	Locked   bool
}

// lookAt reads many counters in one snapshot. Each row takes its tables by their keys,
// whatever the planner believes of tables that were not analyzed yet.
const lookAt = `
	SELECT a.place, p.revision <= a.revision AND NOT EXISTS (
			SELECT FROM plan_revisions WHERE is_default AND revision > a.default_revision),
		p.revision, asked.seen,
		coalesce(` + isLocked + `, false)
	FROM unnest(@workspaces::text[], @features::text[], @epochs::text[], @resources::text[],
			@limits::bigint[], @revisions::bigint[], @defaults::bigint[])
		WITH ORDINALITY AS a (workspace_id, feature_key, usage_epoch, resource_id, limit_value, revision, default_revision, place)
	CROSS JOIN LATERAL (SELECT coalesce((SELECT w.revision FROM workspaces w WHERE w.id = a.workspace_id), 0)) AS p (revision)
	CROSS JOIN LATERAL (SELECT coalesce(max(c.count), 0) AS seen, coalesce(max(c.registered), 0) AS registered
		FROM usage_counters c WHERE c.workspace_id = a.workspace_id AND c.feature_key = a.feature_key AND c.usage_epoch = a.usage_epoch) AS asked
	ORDER BY a.place`

// look reads what each change would meet, all in one snapshot.
func (c *Counters) look(ctx context.Context, q queryer, all []terms, changes []Change) ([]sight, error) {
	resources := make([]string, len(changes))
	for i, change := range changes {
		if all[i].kind != subscriptions.FeatureFlow { // what a flow has was registered before it was one
			resources[i] = change.ResourceID
		}
	}
	rows, err := q.Query(ctx, lookAt, pgx.NamedArgs{
		"workspaces": column(all, func(t terms) string { return t.workspace }),
		"features":   column(all, func(t terms) string { return t.feature }),
		"epochs":     column(all, terms.epoch),
		"resources":  resources,
		"limits":     column(all, func(t terms) *int64 { return t.limit.Pointer() }),
		"revisions":  column(all, func(t terms) int64 { return t.plan.Revision }),
		"defaults":   column(all, terms.defaultRevision),
	})
	if err != nil {
		return nil, fmt.Errorf("read %d counters: %w", len(changes), err)
	}
	seen, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sight])
	if err != nil {
		return nil, fmt.Errorf("read %d counters: %w", len(changes), err)
	}
	return seen, nil
}

// termsOfAll reads each workspace's plan once.
func (c *Counters) termsOfAll(ctx context.Context, changes []Change) ([]terms, error) {
	plans := make(map[string]subscriptions.PlanInfo)
	all := make([]terms, len(changes))
	for i, change := range changes {
		plan, known := plans[change.WorkspaceID]
		if !known {
			t, err := c.termsOf(ctx, change.WorkspaceID, change.Feature)
			if err != nil {
				return nil, err
			}
			plan = t.plan
			plans[change.WorkspaceID] = plan
		}
		all[i] = termsIn(plan, change.WorkspaceID, change.Feature)
		c.complete(ctx, &all[i])
	}
	return all, nil
}

// dropStale drops what turned out to be old, each workspace once, and reports whether
// anything was.
func (c *Counters) dropStale(ctx context.Context, all []terms, readings []reading) bool {
	dropped := make(map[string]bool)
	for i, r := range readings {
		if t := all[i]; !r.fresh && !dropped[t.workspace] {
			dropped[t.workspace] = true
			c.drop(ctx, t.plan, r)
		}
	}
	return len(dropped) > 0
}

// lookFresh looks with terms that are in force.
func (c *Counters) lookFresh(ctx context.Context, q queryer, changes []Change) ([]terms, []sight, error) {
	for range staleAttempts {
		all, err := c.termsOfAll(ctx, changes)
		if err != nil {
			return nil, nil, err
		}
		seen, err := c.look(ctx, q, all, changes)
		if err != nil {
			return nil, nil, err
		}
		readings := column(seen, func(s sight) reading { return reading{fresh: s.Fresh, revision: s.Revision} })
		if !c.dropStale(ctx, all, readings) {
			return all, seen, nil
		}
	}
	return nil, nil, fmt.Errorf("%w: plans change faster than they are read", ErrUnavailable)
}

// Verdict is what a change would get.
type Verdict struct {
	Balance
	// Err is what Consume would refuse it with; nil where there is room.
	Err error
}

// Check tells of each change whether there is room for it alone, consuming nothing:
// Used is what is used now. An error that is no verdict is ErrUnavailable, or
// the database's.
func (c *Counters) Check(ctx context.Context, changes []Change) ([]Verdict, error) {
	verdicts, valid := make([]Verdict, len(changes)), make([]Change, 0, len(changes))
	places := make([]int, 0, len(changes))
	for i, change := range changes {
		if verdicts[i].Err = change.check(); verdicts[i].Err == nil {
			valid, places = append(valid, change), append(places, i)
		}
	}
	if len(valid) == 0 {
		return verdicts, nil
	}
	all, seen, err := c.lookFresh(ctx, c.pool, valid)
	if err != nil {
		return nil, err
	}
	for i, place := range places {
		verdicts[place] = all[i].verdict(valid[i], seen[i])
	}
	return verdicts, nil
}

func (t terms) verdict(change Change, s sight) Verdict {
	v := Verdict{Balance: t.balance(s.Used)}
	if fault := t.resourceFault(change); fault != nil {
		v.Err = fault
	} else if s.Used > t.room(change.Quantity) {
		v.Err = t.refusal(change, finding{s.Used, s.Locked})
	}
	return v
}

// CheckResource is *ResourceLocked if the resource is beyond what the plan allows, for
// whoever is about to change it, and nil for one that is not or was never registered. It
// reads in the caller's transaction and changes nothing.
func (c *Counters) CheckResource(ctx context.Context, tx pgx.Tx, workspace, feature, resource string) error {
	change := Change{WorkspaceID: workspace, Feature: feature, ResourceID: resource}
	if resource == "" {
		return &InvalidArgument{"resource_id", idRule}
	}
	if err := change.check(); err != nil {
		return err
	}
	all, seen, err := c.lookFresh(ctx, tx, []Change{change})
	if err != nil {
		return err
	}
	if seen[0].Locked {
		return all[0].lockedError(resource, seen[0].Used)
	}
	return nil
}
