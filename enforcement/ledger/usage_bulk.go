package ledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/subscriptions"
)

// countersPerQuery bounds one question to the database.
const countersPerQuery = 10_000

// counted is a row of the counts.
type counted struct {
	Workspace, Epoch string
	Used             int64
}

// UsageOf is how many executions each counter has counted, as far as they are
// folded. One that is not in the result counted none.
func (s *Store) UsageOf(ctx context.Context, counters []subscriptions.Counter) (map[subscriptions.Counter]int64, error) {
	used := make(map[subscriptions.Counter]int64, len(counters))
	for some := range slices.Chunk(counters, countersPerQuery) {
		workspaces, epochs := make([]string, len(some)), make([]string, len(some))
		for i, c := range some {
			workspaces[i], epochs[i] = c.WorkspaceID, c.UsageEpoch
		}
		rows, err := s.pool.Query(ctx, `
			select p.workspace_id, p.usage_epoch, p.used
			from unnest(@workspaces::text[], @epochs::text[]) as asked (workspace_id, usage_epoch)
			join period_usage p using (workspace_id, usage_epoch)`,
			pgx.NamedArgs{"workspaces": workspaces, "epochs": epochs})
		if err != nil {
			return nil, fmt.Errorf("read usage of %d counters: %w", len(some), err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[counted])
		if err != nil {
			return nil, fmt.Errorf("read usage of %d counters: %w", len(some), err)
		}
		for _, c := range found {
			used[subscriptions.Counter{WorkspaceID: c.Workspace, UsageEpoch: c.Epoch}] = c.Used
		}
	}
	return used, nil
}

// UsageIn is how many executions each workspace has counted in the epoch, as far as
// they are folded. It reads all of the table, for a person who waits.
func (s *Store) UsageIn(ctx context.Context, epoch string) (map[string]int64, error) {
	rows, err := s.pool.Query(ctx, `select workspace_id, usage_epoch, used from period_usage where usage_epoch = @epoch`,
		pgx.NamedArgs{"epoch": epoch})
	if err != nil {
		return nil, fmt.Errorf("read usage in %s: %w", epoch, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[counted])
	if err != nil {
		return nil, fmt.Errorf("read usage in %s: %w", epoch, err)
	}
	used := make(map[string]int64, len(found))
	for _, c := range found {
		used[c.Workspace] = c.Used
	}
	return used, nil
}
