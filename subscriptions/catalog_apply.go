package subscriptions

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
)

// catalogLock is the advisory lock under which a catalog is applied: "hr-catlg" in
// ASCII.
const catalogLock int64 = 0x68722d6361746c67

// Applied is what ApplyCatalog did.
type Applied struct {
	// Revision is the catalog's number now: a new one if anything changed, else
	// the one in force.
	Revision int64        `json:"revision"`
	Changes  []PlanChange `json:"changes"`
}

// ApplyCatalog makes the catalog the one in force: it writes a new immutable
// revision of each plan that differs, all with the same new number, and nothing
// at all if none does. Applies of several processes happen one after another.
//
// Running periods keep the terms they were opened with; the next period of each
// takes the newest. A plan that the catalog no longer has is marked as removed,
// however many periods run on it: nobody can be put on it any more, and those
// who are on it keep its last terms from period to period. To end that, assign
// them another plan.
//
// The error is a *CatalogError for a catalog that ParseCatalog would refuse.
func (s *Store) ApplyCatalog(ctx context.Context, catalog Catalog) (Applied, error) {
	if err := catalog.validate(); err != nil {
		return Applied{}, err
	}
	var applied Applied
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var err error
		applied, err = applyCatalog(ctx, tx, catalog)
		return err
	})
	if err != nil {
		return Applied{}, fmt.Errorf("apply catalog: %w", err)
	}
	return applied, nil
}

func applyCatalog(ctx context.Context, tx pgx.Tx, catalog Catalog) (Applied, error) {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(@lock)`, pgx.NamedArgs{"lock": catalogLock}); err != nil {
		return Applied{}, fmt.Errorf("wait for another apply: %w", err)
	}
	latest, err := latestPlans(ctx, tx)
	if err != nil {
		return Applied{}, err
	}
	applied := Applied{Changes: planChanges(latest, catalog)}
	if err := countRunning(ctx, tx, applied.Changes); err != nil {
		return Applied{}, err
	}
	if (Diff{Changes: applied.Changes}).Empty() {
		for _, p := range latest {
			applied.Revision = max(applied.Revision, p.Revision)
		}
		return applied, nil
	}
	if applied.Revision, err = nextRevision(ctx, tx); err != nil {
		return Applied{}, err
	}
	if err := writeRevisions(ctx, tx, &applied, planStates(latest, catalog)); err != nil {
		return Applied{}, err
	}
	return applied, followKinds(ctx, tx, catalog)
}

// planStates maps each plan to the state that a change would write: the
// catalog's, or the last one with the mark that it is removed.
func planStates(latest []PlanRevision, catalog Catalog) map[string]PlanRevision {
	states := make(map[string]PlanRevision, len(latest)+len(catalog.Plans))
	for _, p := range latest {
		p.Removed, p.Default = true, false
		states[p.Key] = p
	}
	for _, p := range catalog.Plans {
		states[p.Key] = PlanRevision{Plan: p}
	}
	return states
}

func nextRevision(ctx context.Context, tx pgx.Tx) (int64, error) {
	rows, err := tx.Query(ctx, `SELECT nextval('catalog_revision_seq')`)
	if err != nil {
		return 0, fmt.Errorf("take a revision: %w", err)
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
}

const insertPlan = `INSERT INTO plan_revisions (plan_key, revision, is_default, rank,
	max_executions, max_concurrent_executions, max_tasks_per_execution, max_execution_duration_minutes,
	max_execution_payload_size_mb, max_storage_mb, max_executions_per_minute,
	features, stripe_prices, removed, quota_interval, feature_kinds)
VALUES (@key, @revision, @default, @rank,
	@max_executions, @max_concurrent_executions, @max_tasks_per_execution, @max_execution_duration_minutes,
	@max_execution_payload_size_mb, @max_storage_mb, @max_executions_per_minute,
	@features, @stripe_prices, @removed, nullif(@quota_interval, ''), @feature_kinds)`

func writeRevisions(ctx context.Context, tx pgx.Tx, applied *Applied, states map[string]PlanRevision) error {
	batch := &pgx.Batch{}
	for i := range applied.Changes {
		change := &applied.Changes[i]
		if change.Kind == PlanUnchanged {
			continue
		}
		change.To = applied.Revision
		state := states[change.Key]
		state.Revision = applied.Revision
		batch.Queue(insertPlan, planArgs(state))
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("write plan revisions: %w", err)
	}
	return nil
}

// followKinds gives overrides of features the kind that the catalog now says.
func followKinds(ctx context.Context, tx pgx.Tx, catalog Catalog) error {
	var fields, kinds []string
	for _, p := range catalog.Plans {
		for _, feature := range p.Named() {
			fields, kinds = append(fields, keyFeatures+"."+feature), append(kinds, string(p.KindOf(feature)))
		}
	}
	_, err := tx.Exec(ctx, `UPDATE plan_overrides o SET kind = nullif(said.kind, 'stock')
		FROM (SELECT DISTINCT field, kind FROM unnest(@fields::text[], @kinds::text[]) AS t (field, kind)) said
		WHERE o.field = said.field AND o.kind IS DISTINCT FROM nullif(said.kind, 'stock')`,
		pgx.NamedArgs{"fields": fields, "kinds": kinds})
	if err != nil {
		return fmt.Errorf("write the kinds of overridden features: %w", err)
	}
	return nil
}

func planArgs(p PlanRevision) pgx.NamedArgs {
	features := make(map[string]*int64, len(p.Features))
	for name, limit := range p.Features {
		features[name] = limit.Pointer()
	}
	prices := slices.Sorted(slices.Values(p.StripePrices))
	if prices == nil {
		prices = []string{}
	}
	args := pgx.NamedArgs{
		"key": p.Key, "revision": p.Revision, "default": p.Default, "rank": p.Rank,
		"features": features, "stripe_prices": prices, "removed": p.Removed, "quota_interval": p.QuotaInterval,
		"feature_kinds": cloneKinds(p.Kinds),
	}
	for _, name := range schemas.LimitNames {
		args[name] = p.Limits.Named(name).Pointer()
	}
	return args
}

type planCount struct {
	Key   string
	Count int64
}

// countRunning fills in how many open periods are on each plan.
func countRunning(ctx context.Context, q queryer, changes []PlanChange) error {
	keys := make([]string, len(changes))
	for i, change := range changes {
		keys[i] = change.Key
	}
	rows, err := q.Query(ctx, `SELECT plan_key, count(*) FROM subscriptions
		WHERE closed_at IS NULL AND plan_key = ANY(@keys) GROUP BY plan_key`, pgx.NamedArgs{"keys": keys})
	if err != nil {
		return fmt.Errorf("count running periods: %w", err)
	}
	counts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[planCount])
	if err != nil {
		return fmt.Errorf("count running periods: %w", err)
	}
	running := make(map[string]int64, len(counts))
	for _, c := range counts {
		running[c.Key] = c.Count
	}
	for i := range changes {
		changes[i].Running = running[changes[i].Key]
	}
	return nil
}
