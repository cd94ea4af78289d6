package webhooks

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Places are the accounts and modes in which a customer or a subscription was heard of,
// as mappings of it without a workspace: none of one that was not, several of one whose
// id several accounts have.
func (l *Ledger) Places(ctx context.Context, id string) ([]Mapping, error) {
	rows, err := l.pool.Query(ctx, `SELECT DISTINCT account, livemode FROM stripe_sync_requests
		WHERE subscription_id = @id OR customer_id <> '' AND customer_id = @id ORDER BY account, livemode`, pgx.NamedArgs{"id": id})
	if err != nil {
		return nil, fmt.Errorf("look for %s: %w", id, err)
	}
	places, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Mapping, err error) {
		return m, row.Scan(&m.Account, &m.Livemode)
	})
	if err != nil {
		return nil, fmt.Errorf("look for %s: %w", id, err)
	}
	return places, nil
}
