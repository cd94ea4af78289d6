package subscriptions

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Waiting is what an outbox holds that is not published yet.
type Waiting struct {
	News int64
	// Oldest is how long the oldest has waited by the database's clock, 0 without any.
	Oldest time.Duration
}

// Waiting looks what waits. It reads all of it: for a look now and then.
func (o *Outbox) Waiting(ctx context.Context) (Waiting, error) {
	rows, err := o.pool.Query(ctx, `
		SELECT count(*), coalesce(clock_timestamp() - min(created_at), interval '0') FROM outbox WHERE published_at IS NULL`)
	if err != nil {
		return Waiting{}, fmt.Errorf("look at the outbox: %w", err)
	}
	waiting, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Waiting])
	if err != nil {
		return Waiting{}, fmt.Errorf("look at the outbox: %w", err)
	}
	return waiting, nil
}
