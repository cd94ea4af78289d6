package webhooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// world is one of the two modes of an account: what can be listed with one call.
type world struct {
	// account is the connected account, empty for one's own.
	account  string
	livemode bool
}

func (w world) args() pgx.NamedArgs {
	return pgx.NamedArgs{"account": w.account, "livemode": w.livemode}
}

// String is how a log or a person is told of a world.
func (w world) String() string {
	mode := "test"
	if w.livemode {
		mode = "live"
	}
	if w.account == "" {
		return mode + " mode"
	}
	return mode + " mode of " + w.account
}

// errNoWorld means that the key can see nothing of what is followed.
var errNoWorld = errors.New("HEADROOM_STRIPE_API_KEY is of the other mode than HEADROOM_STRIPE_MODE follows")

// accountsSQL finds the connected accounts without reading all of their
// subscriptions: each step asks for the next account of the index.
const accountsSQL = `WITH RECURSIVE found AS (
		(SELECT account FROM stripe_sync_requests ORDER BY account LIMIT 1)
		UNION ALL
		SELECT (SELECT r.account FROM stripe_sync_requests r WHERE r.account > f.account ORDER BY r.account LIMIT 1)
		FROM found f WHERE f.account IS NOT NULL)
	SELECT account FROM found WHERE account <> ''`

// worlds are all that is followed and that the key can see: one's own account, the
// connected ones that were heard of, and those that are named.
func (l *Ledger) worlds(ctx context.Context, api *API, named []string) ([]world, error) {
	rows, err := l.pool.Query(ctx, accountsSQL)
	if err != nil {
		return nil, fmt.Errorf("list the accounts that are known: %w", err)
	}
	accounts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list the accounts that are known: %w", err)
	}
	accounts = append(append(accounts, ""), named...)
	slices.Sort(accounts)
	var all []world
	for _, account := range slices.Compact(accounts) {
		for _, livemode := range []bool{true, false} {
			if l.mode.accepts(livemode) && api.serves(livemode) {
				all = append(all, world{account: account, livemode: livemode})
			}
		}
	}
	if len(all) == 0 {
		return nil, errNoWorld
	}
	slices.SortStableFunc(all, func(a, b world) int { return cmp.Compare(a.account, b.account) })
	return all, nil
}

// readCursor reads how far a loop has come, and reports whether it ever ran.
func readCursor(ctx context.Context, q queryer, w world, name string, position any) (bool, error) {
	args := w.args()
	args["name"] = name
	rows, err := q.Query(ctx, `SELECT position FROM stripe_cursors
		WHERE account = @account AND livemode = @livemode AND name = @name`, args)
	if err != nil {
		return false, fmt.Errorf("read cursor %s: %w", name, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return false, fmt.Errorf("read cursor %s: %w", name, err)
	}
	if len(found) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(found[0], position); err != nil {
		return false, fmt.Errorf("read cursor %s: %w", name, err)
	}
	return true, nil
}

// writeCursor notes how far a loop has come.
func writeCursor(ctx context.Context, q queryer, w world, name string, position any) error {
	body, err := json.Marshal(position)
	if err != nil {
		return fmt.Errorf("write cursor %s: %w", name, err)
	}
	args := w.args()
	args["name"], args["position"] = name, string(body)
	_, err = q.Exec(ctx, `INSERT INTO stripe_cursors (account, livemode, name, position) VALUES (@account, @livemode, @name, @position)
		ON CONFLICT (account, livemode, name) DO UPDATE SET position = excluded.position, updated_at = now()`, args)
	if err != nil {
		return fmt.Errorf("write cursor %s: %w", name, err)
	}
	return nil
}
