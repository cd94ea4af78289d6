package webhooks

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// syncKey names a subscription whose look-up is asked for.
type syncKey struct {
	Account        string
	Livemode       bool
	SubscriptionID string
}

func (k syncKey) args() pgx.NamedArgs {
	return pgx.NamedArgs{"account": k.Account, "livemode": k.Livemode, "subscription": k.SubscriptionID}
}

// ask asks for a look-up of a subscription without an event, wakes whoever looks in
// any process, and returns the generation.
func (l *Ledger) ask(ctx context.Context, key syncKey, cause string, now time.Time) (int64, error) {
	generation, err := askIn(ctx, l.pool, key, cause, now)
	if err == nil {
		l.wake()
	}
	return generation, err
}

// askIn asks in the caller's transaction.
func askIn(ctx context.Context, q queryer, key syncKey, cause string, now time.Time) (int64, error) {
	args := key.args()
	args["cause"], args["at"] = cause, now
	rows, err := q.Query(ctx, `WITH asked AS (
			INSERT INTO stripe_sync_requests AS r (account, livemode, subscription_id, requested_at, cause, next_attempt_at)
			VALUES (@account, @livemode, @subscription, @at, @cause, @at)
			ON CONFLICT (account, livemode, subscription_id) DO UPDATE SET `+askAgainSQL+`
			RETURNING generation)
		SELECT generation, pg_notify('`+wakeChannel+`', '') FROM asked`, args)
	if err != nil {
		return 0, fmt.Errorf("ask for subscription %s: %w", key.SubscriptionID, err)
	}
	generation, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (g int64, err error) {
		return g, row.Scan(&g, nil)
	})
	if err != nil {
		return 0, fmt.Errorf("ask for subscription %s: %w", key.SubscriptionID, err)
	}
	return generation, nil
}

// verdict is what becomes of events.
type verdict struct {
	state, reason string
	// workspace is whose they are, empty while that is not known.
	workspace string
	at        time.Time
}

// settledThrough notes that a subscription was looked up as of the generation, and
// gives the verdict on the events that waited for no more than that, in the
// caller's transaction. An event that waits for another subscription too goes on waiting.
// A look-up that is older than what is noted changes nothing of that.
//
// It locks the events before the request, as a delivery does; a caller that holds the
// request already may be ended by Postgres as a deadlock.
func (l *Ledger) settledThrough(ctx context.Context, q queryer, s settlement) error {
	args := s.key.args()
	args["generation"], args["state"], args["reason"] = s.generation, s.verdict.state, tidy(s.verdict.reason)
	args["workspace"], args["at"] = s.verdict.workspace, s.verdict.at
	if _, err := q.Exec(ctx, lockEventsSQL, args); err != nil {
		return fmt.Errorf("lock the events of subscription %s: %w", s.key.SubscriptionID, err)
	}
	_, err := q.Exec(ctx, `UPDATE stripe_sync_requests
		SET synced_generation = @generation, attempts = 0, last_error = '', next_attempt_at = @at
		WHERE account = @account AND livemode = @livemode AND subscription_id = @subscription
			AND synced_generation < @generation`, args)
	if err != nil {
		return fmt.Errorf("note that subscription %s is synced: %w", s.key.SubscriptionID, err)
	}
	_, err = q.Exec(ctx, settleSQL, args)
	if err != nil {
		return fmt.Errorf("settle the events of subscription %s: %w", s.key.SubscriptionID, err)
	}
	return nil
}

// settlement is a look-up that is over.
type settlement struct {
	key syncKey
	// generation is the one that it began at.
	generation int64
	verdict    verdict
}

// waitingSQL are the events that a look-up settles: those that wait for a price are among
// them, for as long as their subscription has none.
const waitingSQL = `(e.state IN ('` + StateReceived + `', '` + StateUnmapped + `')
			OR e.state = '` + StateParked + `' AND e.reason LIKE '` + unresolved + `%')`

// lockEventsSQL makes look-ups of two subscriptions that share an event settle one
// after the other: at once, each would find the other not synced yet.
const lockEventsSQL = `SELECT FROM stripe_events e JOIN stripe_event_subscriptions c ON c.event = e.id
	WHERE c.subscription_id = @subscription AND c.generation <= @generation
		AND e.account = @account AND e.livemode = @livemode
		AND ` + waitingSQL + `
	ORDER BY e.id FOR UPDATE OF e`

const settleSQL = `UPDATE stripe_events e
	SET state = @state, reason = @reason, workspace_id = coalesce(nullif(@workspace, ''), e.workspace_id),
		settled_at = ` + settledAtSQL + `
	FROM stripe_event_subscriptions c
	WHERE c.event = e.id AND c.subscription_id = @subscription AND c.generation <= @generation
		AND e.account = @account AND e.livemode = @livemode
		AND ` + waitingSQL + `
		AND NOT EXISTS (
			SELECT FROM stripe_event_subscriptions o
			JOIN stripe_sync_requests r ON r.account = e.account AND r.livemode = e.livemode
				AND r.subscription_id = o.subscription_id
			WHERE o.event = e.id AND o.subscription_id <> c.subscription_id AND r.synced_generation < o.generation)`

const settledAtSQL = `CASE WHEN @state IN ('` + StateDone + `', '` + StateIgnored + `') THEN @at::timestamptz END`

// setState gives a verdict on one event, whatever state it is in.
func (l *Ledger) setState(ctx context.Context, q queryer, row int64, v verdict) error {
	done, err := q.Exec(ctx, `UPDATE stripe_events
		SET state = @state, reason = @reason, workspace_id = coalesce(nullif(@workspace, ''), workspace_id),
			settled_at = `+settledAtSQL+` WHERE id = @row`,
		pgx.NamedArgs{"row": row, "state": v.state, "reason": tidy(v.reason), "workspace": v.workspace, "at": v.at})
	if err != nil {
		return fmt.Errorf("settle a stripe event: %w", err)
	}
	if done.RowsAffected() == 0 {
		return fmt.Errorf("%w: row %d", ErrUnknownEvent, row)
	}
	return nil
}

// Replay reads the stored body of an id's events anew, as if it had just arrived,
// and asks for the look-ups that follow: what is true now is written, not what the
// body says. Whoever looks in any process is woken. It returns the events' states.
// ErrUnknownEvent means that there is none.
func (l *Ledger) Replay(ctx context.Context, id string, now time.Time) ([]string, error) {
	stored, err := l.Event(ctx, id)
	if err != nil {
		return nil, err
	}
	var states []string
	for _, s := range stored {
		state, err := l.replay(ctx, s, now)
		if err != nil {
			return states, fmt.Errorf("replay stripe event %s: %w", id, err)
		}
		states = append(states, state)
	}
	return states, nil
}

func (l *Ledger) replay(ctx context.Context, s StoredEvent, now time.Time) (string, error) {
	h := hit{body: s.Body, sha256: sha256.Sum256(s.Body), at: now, origin: originReplay}
	args := h.args(sniff(s.Body, l.mode))
	args["row"] = s.Row
	var state string
	err := pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, renewEventSQL+askSQL, args)
		if err != nil {
			return err
		}
		state, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (state string, err error) {
			return state, row.Scan(nil, &state, nil, nil, nil)
		})
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `SELECT pg_notify('`+wakeChannel+`', '')`)
		return err
	})
	if err == nil {
		l.wake()
	}
	return state, err
}

// renewEventSQL writes what a later version of this program may read from a body.
const renewEventSQL = `WITH event AS (
	UPDATE stripe_events e SET livemode = @livemode, type = @type, api_version = @api_version, created = @created,
		object_kind = @object_kind, object_id = @object_id, subscription_id = @subscription, customer_id = @customer,
		state = @state, reason = @reason, attempts = 0, next_attempt_at = @at,
		settled_at = CASE WHEN @state = '` + StateIgnored + `' THEN @at::timestamptz END
	WHERE e.id = @row
	RETURNING e.id, e.state, e.reason, false AS first, false AS altered
)`
