package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
)

// The kinds of what a workspace is known by.
const (
	mapsSubscription = "subscription"
	mapsCustomer     = "customer"
)

// ErrMapped means that a subscription belongs to another workspace: its rows are that
// one's, and nothing moves them.
var ErrMapped = errors.New("the subscription belongs to another workspace")

// ErrInvalidMapping means that a Mapping names no workspace, or nothing at Stripe.
var ErrInvalidMapping = errors.New("invalid mapping")

// Mapping says whose a customer or a subscription of Stripe's is.
type Mapping struct {
	WorkspaceID string
	// Account is the connected account, empty for one's own.
	Account  string
	Livemode bool
	// CustomerID or SubscriptionID is what is mapped, one or both.
	CustomerID, SubscriptionID string
	// Cause is who or what says so.
	Cause string
}

func (m Mapping) check() error {
	var faults []error
	if !schemas.ValidID(m.WorkspaceID) {
		faults = append(faults, fmt.Errorf("workspace %q: is no workspace id", m.WorkspaceID))
	}
	if m.CustomerID == "" && m.SubscriptionID == "" {
		faults = append(faults, errors.New("customer and subscription: one is needed"))
	}
	for _, id := range []string{m.CustomerID, m.SubscriptionID, m.Account} {
		if id != "" && !storableID(id) {
			faults = append(faults, fmt.Errorf("id %q: is none of stripe's", tidy(id)))
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w: %w", ErrInvalidMapping, errors.Join(faults...))
	}
	return nil
}

// Map maps by hand, and asks for the look-ups that waited for it: whoever looks in any
// process is woken. A customer that was mapped before is mapped anew, which concerns
// its coming subscriptions alone. It returns how many look-ups it asked for. The error
// wraps ErrInvalidMapping, ErrMapped, or a fault of the database; nothing is written
// then.
func (l *Ledger) Map(ctx context.Context, m Mapping, now time.Time) (asked int64, err error) {
	if err := m.check(); err != nil {
		return 0, err
	}
	err = pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		asked, err = l.mapIn(ctx, tx, m, now)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("map to workspace %s: %w", m.WorkspaceID, err)
	}
	l.wake()
	return asked, nil
}

func (l *Ledger) mapIn(ctx context.Context, tx pgx.Tx, m Mapping, now time.Time) (int64, error) {
	key := syncKey{Account: m.Account, Livemode: m.Livemode, SubscriptionID: m.SubscriptionID}
	var asked int64
	if m.CustomerID != "" {
		if err := lockCustomer(ctx, tx, key, m.CustomerID); err != nil {
			return 0, err
		}
		if _, err := tx.Exec(ctx, insertMappingSQL+` DO UPDATE SET workspace_id = excluded.workspace_id, cause = excluded.cause`,
			m.args(mapsCustomer, m.CustomerID)); err != nil {
			return 0, err
		}
		n, err := askWaiting(ctx, tx, key, m.CustomerID, now)
		if err != nil {
			return 0, err
		}
		asked += n
	}
	if m.SubscriptionID != "" {
		is, err := mapOnce(ctx, tx, m, mapsSubscription)
		if err != nil {
			return 0, err
		}
		if is != m.WorkspaceID {
			return 0, fmt.Errorf("%w: %s", ErrMapped, is)
		}
		if _, err := askIn(ctx, tx, key, "map", now); err != nil {
			return 0, err
		}
		asked++
	}
	_, err := tx.Exec(ctx, `SELECT pg_notify('`+wakeChannel+`', '')`)
	return asked, err
}

func (m Mapping) args(kind, id string) pgx.NamedArgs {
	return pgx.NamedArgs{
		"account": m.Account, "livemode": m.Livemode, "kind": kind, "id": id, "workspace": m.WorkspaceID, "cause": m.Cause,
	}
}

const insertMappingSQL = `INSERT INTO stripe_mappings (account, livemode, kind, stripe_id, workspace_id, cause)
	VALUES (@account, @livemode, @kind, @id, @workspace, @cause)
	ON CONFLICT (account, livemode, kind, stripe_id)`

// mapOnce writes a mapping unless there is one, and returns whose it is now.
func mapOnce(ctx context.Context, tx pgx.Tx, m Mapping, kind string) (string, error) {
	id := m.SubscriptionID
	if kind == mapsCustomer {
		id = m.CustomerID
	}
	args := m.args(kind, id)
	if _, err := tx.Exec(ctx, insertMappingSQL+` DO NOTHING`, args); err != nil {
		return "", fmt.Errorf("map %s %s: %w", kind, id, err)
	}
	return mapped(ctx, tx, args)
}

// mapped is the workspace of a mapping, empty without one.
func mapped(ctx context.Context, q queryer, args pgx.NamedArgs) (string, error) {
	rows, err := q.Query(ctx, `SELECT workspace_id FROM stripe_mappings
		WHERE account = @account AND livemode = @livemode AND kind = @kind AND stripe_id = @id`, args)
	if err != nil {
		return "", fmt.Errorf("read mapping of %v: %w", args["id"], err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", fmt.Errorf("read mapping of %v: %w", args["id"], err)
	}
	if len(found) == 0 {
		return "", nil
	}
	return found[0], nil
}

// lockCustomer keeps others from mapping a customer, or from finding that it is not, until
// the transaction ends: each would not see what the other does, and a subscription would
// wait for a mapping that is there. It comes before any event or request is locked.
func lockCustomer(ctx context.Context, tx pgx.Tx, key syncKey, customer string) error {
	args := key.args()
	args["customer"] = customer
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('stripe customer'), hashtext(concat_ws(' ', @account::text, @livemode::bool, @customer::text)))`, args); err != nil {
		return fmt.Errorf("lock customer %s: %w", customer, err)
	}
	return nil
}

// askWaiting asks again for the subscriptions of a customer that wait for a workspace.
// It comes last in its transaction: it locks several requests.
func askWaiting(ctx context.Context, tx pgx.Tx, key syncKey, customer string, now time.Time) (int64, error) {
	args := key.args()
	args["customer"], args["at"] = customer, now
	done, err := tx.Exec(ctx, `WITH waiting AS (
			SELECT account, livemode, subscription_id FROM stripe_sync_requests
			WHERE customer_id = @customer AND account = @account AND livemode = @livemode AND outcome = '`+StateUnmapped+`'
			ORDER BY subscription_id FOR UPDATE)
		UPDATE stripe_sync_requests r SET generation = r.generation + 1, requested_at = @at, cause = 'map',
			next_attempt_at = CASE WHEN r.synced_generation < r.generation THEN r.next_attempt_at ELSE @at END
		FROM waiting w WHERE (r.account, r.livemode, r.subscription_id) = (w.account, w.livemode, w.subscription_id)`, args)
	if err != nil {
		return 0, fmt.Errorf("ask for the subscriptions of customer %s: %w", customer, err)
	}
	return done.RowsAffected(), nil
}
