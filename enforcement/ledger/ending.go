package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
)

// Ending is how an execution ended, as far as the ledger knows.
type Ending struct {
	// Known: the ledger has heard of the execution.
	Known bool
	// Outcome is empty while nobody said that it is over.
	Outcome     schemas.Outcome
	CompletedAt time.Time
}

// Ending looks one execution up.
func (s *Store) Ending(ctx context.Context, workspace, id string) (Ending, error) {
	var ending Ending
	var at *time.Time
	err := s.pool.QueryRow(ctx, `
		select coalesce(outcome, ''), completed_at from executions
		where workspace_id = @workspace and execution_id = @execution`,
		pgx.NamedArgs{"workspace": workspace, "execution": id}).Scan(&ending.Outcome, &at)
	if errors.Is(err, pgx.ErrNoRows) {
		return Ending{}, nil
	}
	if err != nil {
		return Ending{}, fmt.Errorf("read execution %s of workspace %s: %w", id, workspace, err)
	}
	ending.Known, ending.CompletedAt = true, instant(at)
	return ending, nil
}
