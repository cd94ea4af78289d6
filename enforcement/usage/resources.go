package usage

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

const (
	defaultPage = 100
	largestPage = 1000
)

// ResourceQuery asks for a page of the resources of one feature.
type ResourceQuery struct {
	WorkspaceID, Feature string
	// After is the Next of the page before; empty is the first page.
	After string
	// Limit is how many: 100 if 0, 1000 at most.
	Limit int
}

// Resource is one thing that an application has registered.
type Resource struct {
	ID       string
	Quantity int64
	// CreatedAt is when it was made, UTC.
	CreatedAt time.Time
	// Kept is its place in the workspace's choice, from 1; 0 where it was not chosen.
	Kept int
	// Through are the units in use up to and including it, in the order in which resources
	// stay unlocked.
	Through int64
	// Locked tells that Through is more than the limit.
	Locked bool
}

// ResourcePage is a page in the order in which resources stay unlocked: the workspace's
// choice first, then the oldest, then by id.
type ResourcePage struct {
	WorkspaceID, Feature, PlanKey string
	Resources                     []Resource
	// Used is what the counter says, of which Loose are no resource's.
	Used, Loose int64
	Limit       schemas.Limit
	// Next asks for the page after this one; empty on the last.
	Next string
}

// Reason is why a resource of the page is locked and what unlocks it; nil for one
// that is not.
func (p ResourcePage) Reason(r Resource) error {
	if !r.Locked {
		return nil
	}
	limit, _ := p.Limit.Value()
	return &ResourceLocked{
		WorkspaceID: p.WorkspaceID, Feature: p.Feature, ResourceID: r.ID, PlanKey: p.PlanKey, Used: p.Used, Limit: limit,
	}
}

// resourceRow is a row of a page, beside what is the same in all rows: without any
// resource there is one row, whose id is nil.
type resourceRow struct {
	Fresh                    bool
	Revision                 int64
	Used, Registered, Before int64
	ID                       *string
	Quantity                 *int64
	CreatedAt                *time.Time
	Rank                     *int32
}

// selectResources starts from the units before the page, so that a page costs a sum over
// an index and not a sort of all that came before.
const selectResources = askCounter + `, page AS (
		SELECT resource_id, quantity, created_at, keep_rank FROM usage_resources
		WHERE workspace_id = @workspace::text AND feature_key = @feature::text
			AND (keep_rank, created_at, resource_id) > (@rank::integer, coalesce(@created::timestamptz, '-infinity'), @id::text)
		ORDER BY keep_rank, created_at, resource_id LIMIT @most::integer)
	SELECT fresh, revision, seen, registered, (
			SELECT coalesce(sum(quantity), 0)::bigint FROM usage_resources
			WHERE workspace_id = @workspace::text AND feature_key = @feature::text
				AND (keep_rank, created_at, resource_id) <= (@rank::integer, coalesce(@created::timestamptz, '-infinity'), @id::text)),
		page.resource_id, page.quantity, page.created_at, page.keep_rank
	FROM asked LEFT JOIN page ON true
	ORDER BY page.keep_rank, page.created_at, page.resource_id`

// Resources lists what is registered of a feature, and which of it is locked by the
// plan that is in force. A wrong After is an *InvalidArgument.
func (c *Counters) Resources(ctx context.Context, q ResourceQuery) (ResourcePage, error) {
	if err := checkNames(q.WorkspaceID, q.Feature); err != nil {
		return ResourcePage{}, err
	}
	after, err := parsePlace(q.After)
	if err != nil {
		return ResourcePage{}, err
	}
	size := min(max(q.Limit, 0), largestPage)
	if size == 0 {
		size = defaultPage
	}
	var page ResourcePage
	err = c.onCurrentPlan(ctx, q.WorkspaceID, q.Feature, func(t terms) (reading, error) {
		args := t.args()
		args["rank"], args["created"], args["id"], args["most"] = after.rank, after.created, after.id, size+1
		rows, err := c.pool.Query(ctx, selectResources, args)
		if err != nil {
			return reading{}, fmt.Errorf("list %s of workspace %s: %w", q.Feature, q.WorkspaceID, err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[resourceRow])
		if err != nil {
			return reading{}, fmt.Errorf("list %s of workspace %s: %w", q.Feature, q.WorkspaceID, err)
		}
		page = pageOf(t, found, size)
		return reading{fresh: found[0].Fresh, revision: found[0].Revision}, nil
	})
	return page, err
}

func pageOf(t terms, found []resourceRow, size int) ResourcePage {
	first := found[0]
	page := ResourcePage{
		WorkspaceID: t.workspace, Feature: t.feature, PlanKey: t.plan.Snapshot.PlanKey, Limit: t.limit,
		Used: first.Used, Loose: first.Used - first.Registered, Resources: []Resource{},
	}
	through := page.Loose + first.Before
	for i, row := range found {
		if row.ID == nil {
			break
		}
		if i == size {
			last := found[i-1]
			page.Next = place{*last.Rank, last.CreatedAt, *last.ID}.String()
			break
		}
		through += *row.Quantity
		r := Resource{
			ID: *row.ID, Quantity: *row.Quantity, CreatedAt: row.CreatedAt.UTC(),
			Through: through, Locked: t.kind != subscriptions.FeatureFlow && t.limit.Exceeded(through),
		}
		if *row.Rank != math.MaxInt32 {
			r.Kept = int(*row.Rank)
		}
		page.Resources = append(page.Resources, r)
	}
	return page
}

// place is where a page begins: after the resource of this rank, age and id.
type place struct {
	rank    int32
	created *time.Time
	id      string
}

// String is rank, age and id; an id has no dot.
func (p place) String() string {
	return fmt.Sprintf("%d.%d.%s", p.rank, p.created.UnixMicro(), p.id)
}

func parsePlace(s string) (place, error) {
	if s == "" {
		return place{}, nil
	}
	wrong := &InvalidArgument{"after", "must be what the page before gave as its next"}
	parts := strings.Split(s, ".")
	if len(parts) != 3 || !schemas.ValidID(parts[2]) {
		return place{}, wrong
	}
	rank, err := strconv.ParseInt(parts[0], 10, 32)
	if err != nil {
		return place{}, wrong
	}
	micros, err := strconv.ParseInt(parts[1], 10, 64)
	created := time.UnixMicro(micros).UTC()
	if year := created.Year(); err != nil || year < 1 || year > 9999 {
		return place{}, wrong
	}
	return place{int32(rank), &created, parts[2]}, nil
}
