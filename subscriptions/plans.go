package subscriptions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
)

// PlanRevision is one immutable state of a plan.
type PlanRevision struct {
	Plan
	// Revision is the catalog's number at the apply that made this state. All
	// plans share one sequence, so a larger number is always a later catalog.
	Revision int64 `json:"revision"`
	// Removed marks the state of a plan that left the catalog. It keeps the
	// terms the plan had last.
	Removed bool `json:"removed"`
	// CreatedAt is when the catalog was applied, UTC.
	CreatedAt time.Time `json:"created_at"`
}

const planColumns = `plan_key, revision, is_default, rank,
	max_executions, max_concurrent_executions, max_tasks_per_execution, max_execution_duration_minutes,
	max_execution_payload_size_mb, max_storage_mb, max_executions_per_minute,
	features, stripe_prices, removed, created_at, coalesce(quota_interval, ''), feature_kinds`

func scanPlan(row pgx.CollectableRow) (PlanRevision, error) {
	var (
		p        PlanRevision
		limits   [7]*int64
		features map[string]*int64
	)
	err := row.Scan(&p.Key, &p.Revision, &p.Default, &p.Rank,
		&limits[0], &limits[1], &limits[2], &limits[3], &limits[4], &limits[5], &limits[6],
		&features, &p.StripePrices, &p.Removed, &p.CreatedAt, &p.QuotaInterval, &p.Kinds)
	if err != nil {
		return PlanRevision{}, err
	}
	for i, name := range schemas.LimitNames {
		*p.Limits.Named(name) = schemas.LimitFrom(limits[i])
	}
	p.Features = make(map[string]schemas.Limit, len(features))
	for name, value := range features {
		p.Features[name] = schemas.LimitFrom(value)
	}
	if len(p.Kinds) == 0 {
		p.Kinds = nil
	}
	p.CreatedAt = p.CreatedAt.UTC()
	return p, nil
}

// Plans lists the catalog in force, by rank. It is empty before the first
// catalog is applied.
func (s *Store) Plans(ctx context.Context) ([]PlanRevision, error) {
	plans, err := latestPlans(ctx, s.pool)
	if err != nil {
		return nil, err
	}
	plans = slices.DeleteFunc(plans, func(p PlanRevision) bool { return p.Removed })
	slices.SortFunc(plans, func(a, b PlanRevision) int { return cmp.Compare(a.Rank, b.Rank) })
	return plans, nil
}

// CatalogRevision is the number of the newest apply that changed anything, 0
// before the first. It is cheap enough to be asked for every second.
func (s *Store) CatalogRevision(ctx context.Context) (int64, error) {
	rows, err := s.pool.Query(ctx, `SELECT coalesce(max(revision), 0) FROM plan_revisions`)
	if err != nil {
		return 0, fmt.Errorf("read catalog revision: %w", err)
	}
	revision, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	if err != nil {
		return 0, fmt.Errorf("read catalog revision: %w", err)
	}
	return revision, nil
}

// RequireDefaultPlan is nil when the catalog in force has a default plan, and
// ErrNoDefaultPlan when there is none. Any other error means that nothing is known.
func (s *Store) RequireDefaultPlan(ctx context.Context) error {
	rows, err := s.pool.Query(ctx, selectDefaultPlan)
	if err != nil {
		return fmt.Errorf("read default plan: %w", err)
	}
	plans, err := pgx.CollectRows(rows, scanPlan)
	if err != nil {
		return fmt.Errorf("read default plan: %w", err)
	}
	if len(plans) == 0 {
		return ErrNoDefaultPlan
	}
	return nil
}

// Plan lists all revisions of one plan, newest first, of a removed plan too.
// ErrUnknownPlan means that no catalog ever had it.
func (s *Store) Plan(ctx context.Context, key string) ([]PlanRevision, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+planColumns+` FROM plan_revisions
		WHERE plan_key = @key ORDER BY revision DESC`, pgx.NamedArgs{"key": key})
	if err != nil {
		return nil, fmt.Errorf("read plan %s: %w", key, err)
	}
	revisions, err := pgx.CollectRows(rows, scanPlan)
	if err != nil {
		return nil, fmt.Errorf("read plan %s: %w", key, err)
	}
	if len(revisions) == 0 {
		return nil, unknownPlan(ctx, s.pool, key)
	}
	return revisions, nil
}

// latestPlans is the newest revision of every plan there ever was, by key.
func latestPlans(ctx context.Context, q queryer) ([]PlanRevision, error) {
	rows, err := q.Query(ctx, `SELECT DISTINCT ON (plan_key) `+planColumns+` FROM plan_revisions
		ORDER BY plan_key, revision DESC`)
	if err != nil {
		return nil, fmt.Errorf("read plans: %w", err)
	}
	plans, err := pgx.CollectRows(rows, scanPlan)
	if err != nil {
		return nil, fmt.Errorf("read plans: %w", err)
	}
	return plans, nil
}

// latestPlan is the newest revision of one plan, or nil if there is none.
func latestPlan(ctx context.Context, q queryer, key string) (*PlanRevision, error) {
	rows, err := q.Query(ctx, `SELECT `+planColumns+` FROM plan_revisions
		WHERE plan_key = @key ORDER BY revision DESC LIMIT 1`, pgx.NamedArgs{"key": key})
	if err != nil {
		return nil, fmt.Errorf("read plan %s: %w", key, err)
	}
	plans, err := pgx.CollectRows(rows, scanPlan)
	if err != nil {
		return nil, fmt.Errorf("read plan %s: %w", key, err)
	}
	if len(plans) == 0 {
		return nil, nil
	}
	return &plans[0], nil
}

// selectDefaultPlan finds at most one row: a catalog has one default, and
// a plan that stops being it gets a new revision.
const selectDefaultPlan = `SELECT ` + planColumns + ` FROM plan_revisions p
	WHERE is_default AND NOT EXISTS (
		SELECT FROM plan_revisions n WHERE n.plan_key = p.plan_key AND n.revision > p.revision)
	ORDER BY revision DESC LIMIT 1`

// unknownPlan is ErrUnknownPlan with the keys that exist.
func unknownPlan(ctx context.Context, q queryer, key string) error {
	plans, err := latestPlans(ctx, q)
	if err != nil {
		return err
	}
	var keys []string
	for _, p := range plans {
		if !p.Removed {
			keys = append(keys, p.Key)
		}
	}
	if len(keys) == 0 {
		return fmt.Errorf("plan %q: %w: no catalog is applied", key, ErrUnknownPlan)
	}
	return fmt.Errorf("plan %q: %w: the catalog has %s", key, ErrUnknownPlan, strings.Join(keys, ", "))
}
