package subscriptions

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// PeriodRow is what a renewal that is told of is compared with.
type PeriodRow struct {
	ID                     string
	WorkspaceID            string
	PeriodStart, PeriodEnd time.Time
	// Counts is true while the row is open and its workspace points to it.
	Counts bool
	// Revision is the workspace's.
	Revision int64
}

// Periods reads the rows of the ids, by id; an id that is not in the result has no
// row. An id that is no UUID is an error.
func (s *Store) Periods(ctx context.Context, ids []string) (map[string]PeriodRow, error) {
	rows, err := s.pool.Query(ctx, `SELECT s.id::text, s.workspace_id, s.period_start, s.period_end,
			s.closed_at IS NULL AND w.active_subscription_id IS NOT DISTINCT FROM s.id, w.revision
		FROM subscriptions s JOIN workspaces w ON w.id = s.workspace_id
		WHERE s.id = ANY(@ids::uuid[])`, pgx.NamedArgs{"ids": ids})
	if err != nil {
		return nil, fmt.Errorf("read periods: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[PeriodRow])
	if err != nil {
		return nil, fmt.Errorf("read periods: %w", err)
	}
	byID := make(map[string]PeriodRow, len(found))
	for _, row := range found {
		byID[row.ID] = row
	}
	return byID, nil
}
