package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// objectEvent is an event about a charge, a refund, a dispute or a customer, of which it
// is not known yet which subscriptions it is about.
type objectEvent struct {
	row      int64
	key      syncKey // without a subscription
	kind     string
	customer string
	// received is when it came first.
	received time.Time
	attempts int
	object   json.RawMessage
}

// trace is what an object leads to.
type trace struct {
	subscriptions []string
	claim         *claim
	// deleted is a customer that is no more.
	deleted string
	// nothing says why it leads nowhere, and the event is ignored.
	nothing string
}

// errUntold means that what a charge paid was not told of.
var errUntold = errors.New("which invoice it is about is not known: since 2025-03-31.basil only the API says so, set HEADROOM_STRIPE_API_KEY")

// errUntoldInvoice means that an invoice is not known yet. Its event may be on its way.
var errUntoldInvoice = errors.New("no event has told of the invoice yet that it is about")

// delivered is how long Stripe goes on delivering an event: what has not come by then
// does not come.
const delivered = 3 * 24 * time.Hour

const claimObjectSQL = `UPDATE stripe_events e SET next_attempt_at = @until
	FROM (SELECT id FROM stripe_events
		WHERE state IN ('` + StateReceived + `', '` + StateUnmapped + `') AND subscription_id = '' AND next_attempt_at <= @now
		ORDER BY next_attempt_at LIMIT 1 FOR UPDATE SKIP LOCKED) due
	WHERE e.id = due.id
	RETURNING e.id, e.account, e.livemode, e.type, e.received_at, e.customer_id, e.attempts, e.body`

func (l *Ledger) claimObject(ctx context.Context, now time.Time, lease time.Duration) (*objectEvent, error) {
	rows, err := l.pool.Query(ctx, claimObjectSQL, pgx.NamedArgs{"now": now, "until": now.Add(lease)})
	if err != nil {
		return nil, fmt.Errorf("claim an event: %w", err)
	}
	claimed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*objectEvent, error) {
		var (
			e    objectEvent
			body []byte
		)
		if err := row.Scan(&e.row, &e.key.Account, &e.key.Livemode, &e.kind, &e.received, &e.customer, &e.attempts, &body); err != nil {
			return nil, err
		}
		event, err := parseObject("", body)
		if err == nil {
			e.object = event.object("data").fields["object"]
		}
		return &e, nil
	})
	if err != nil || len(claimed) == 0 {
		return nil, err
	}
	return claimed[0], nil
}

// oneObject takes an event that is due, finds the subscriptions that it is about and
// asks for them. It reports whether there was one; an error is one of the database.
func (w *Worker) oneObject(ctx context.Context) (bool, error) {
	e, err := w.ledger.claimObject(ctx, w.now().UTC(), w.lease)
	if err != nil || e == nil {
		return false, err
	}
	w.probe.at("taken")
	tracing, cancel := context.WithTimeout(ctx, lookupPatience)
	found, err := w.trace(tracing, *e)
	cancel()
	if err != nil {
		return true, w.untraced(ctx, *e, err)
	}
	w.probe.at("traced")
	if err := w.attach(ctx, *e, found); err != nil {
		return true, err
	}
	w.probe.at("attached")
	return true, nil
}

// attach stores what an object led to, and has the event wait for the look-ups.
func (w *Worker) attach(ctx context.Context, e objectEvent, t trace) error {
	now := w.now().UTC()
	return pgx.BeginFunc(ctx, w.ledger.pool, func(tx pgx.Tx) error {
		if len(t.subscriptions) == 0 {
			return w.ledger.setState(ctx, tx, e.row, verdict{state: StateIgnored, reason: t.nothing, at: now})
		}
		if _, err := tx.Exec(ctx, `UPDATE stripe_events SET subscription_id = @first WHERE id = @row`,
			pgx.NamedArgs{"row": e.row, "first": t.subscriptions[0]}); err != nil {
			return fmt.Errorf("note what a stripe event is about: %w", err)
		}
		if t.deleted != "" {
			args := e.key.args()
			args["kind"], args["id"] = mapsCustomer, t.deleted
			if _, err := tx.Exec(ctx, `DELETE FROM stripe_mappings
				WHERE account = @account AND livemode = @livemode AND kind = @kind AND stripe_id = @id`, args); err != nil {
				return fmt.Errorf("unmap customer %s: %w", t.deleted, err)
			}
		}
		for _, id := range t.subscriptions {
			key := e.key
			key.SubscriptionID = id
			if t.claim != nil {
				if err := t.claim.write(ctx, tx, key, now); err != nil {
					return err
				}
			}
			if err := attachTo(ctx, tx, e, key, now); err != nil {
				return err
			}
		}
		return nil
	})
}

func attachTo(ctx context.Context, tx pgx.Tx, e objectEvent, key syncKey, now time.Time) error {
	generation, err := askIn(ctx, tx, key, e.kind, now)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO stripe_event_subscriptions (event, subscription_id, generation)
		VALUES (@row, @subscription, @generation)
		ON CONFLICT (event, subscription_id) DO UPDATE SET generation = excluded.generation`,
		pgx.NamedArgs{"row": e.row, "subscription": key.SubscriptionID, "generation": generation})
	if err != nil {
		return fmt.Errorf("note what a stripe event is about: %w", err)
	}
	return nil
}

// untraced says what becomes of an event that leads nowhere yet, as Worker.failed does
// for a look-up.
func (w *Worker) untraced(ctx context.Context, e objectEvent, err error) error {
	now := w.now().UTC()
	args, pause := pgx.NamedArgs{"row": e.row, "at": now, "tried": 0}, time.Duration(0)
	if ctx.Err() == nil {
		state, final := verdictOf(err, e.attempts+1)
		if errors.Is(err, errUntold) || errors.Is(err, errUntoldInvoice) && now.Sub(e.received) > delivered {
			state, final = StateParked, true
		}
		if final {
			w.log.ErrorContext(ctx, "stripe event is given up until a person looks at it", "state", state, "event_type", e.kind, "error", err)
			w.tally.parked.Add(1)
			return w.ledger.setState(ctx, w.ledger.pool, e.row, verdict{state: state, reason: reasonOf(err), at: now})
		}
		pause = w.pauseAfter(e.attempts, err)
		args["at"], args["tried"] = now.Add(pause), 1
		w.tell(ctx, err, slog.String("event_type", e.kind), slog.Int("attempts", e.attempts+1), slog.Duration("again_in", pause))
	}
	_, err = w.ledger.pool.Exec(context.WithoutCancel(ctx), `UPDATE stripe_events SET next_attempt_at = @at, attempts = attempts + @tried
		WHERE id = @row AND state IN ('`+StateReceived+`', '`+StateUnmapped+`')`, args)
	if err != nil {
		return fmt.Errorf("put off a stripe event: %w", err)
	}
	w.wakeAfter(pause)
	return nil
}
