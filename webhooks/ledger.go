package webhooks

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// wakeChannel is where a commit notifies other processes that it asked for a look-up. A
// delivery does not: Postgres commits those who notify one after the other, which
// halves what a burst of deliveries is stored at.
const wakeChannel = "headroom_stripe"

// Where a delivery came from.
const (
	originWebhook = "webhook"
	originSweep   = "sweep"
	originReplay  = "replay"
)

// Ledger is what Stripe told, in Postgres: each event once with its first body,
// each delivery, and the look-ups that they ask for. It is safe for concurrent use
// by any number of processes.
type Ledger struct {
	pool *pgxpool.Pool
	mode Mode
	// woken has room for one: whoever looks up in this process looks at all there is.
	woken chan struct{}
}

// NewLedger makes a Ledger on a database that schemas.Migrate brought up to date. Events
// of the mode's other world are stored as ignored. The pool stays the caller's to
// close. The error names HEADROOM_STRIPE_MODE.
func NewLedger(pool *pgxpool.Pool, mode Mode) (*Ledger, error) {
	if err := mode.check(); err != nil {
		return nil, err
	}
	return &Ledger{pool: pool, mode: mode, woken: make(chan struct{}, 1)}, nil
}

// wake tells whoever looks up in this process that there may be something to.
func (l *Ledger) wake() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

// queryer is a pool or a transaction.
type queryer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// hit is one time that a body arrived.
type hit struct {
	body   []byte
	sha256 [sha256.Size]byte
	at     time.Time
	// signedAt and secret are what its signature told, if it had one.
	signedAt *time.Time
	secret   string
	origin   string
}

// recorded is what became of a hit.
type recorded struct {
	envelope
	// Row is the event's, State the one that it is in.
	Row   int64
	State string
	// first is whether the event was new, altered whether it was not and came with
	// another body than the first.
	first, altered bool
}

// record stores a hit and asks for the look-ups that follow from it, in one
// transaction. An event that is known gets a delivery more. Look-ups are asked for
// again only while it is not settled, so that a redelivery neither is lost behind an
// attempt that failed nor repeats what is done. What a sweep finds and is known
// changes nothing at all. Whoever looks up in this process is woken.
//
// Whatever bytes the body has, an error is a fault of the database.
func (l *Ledger) record(ctx context.Context, h hit) (recorded, error) {
	r := recorded{envelope: sniff(h.body, l.mode)}
	args := h.args(r.envelope)
	args["body"] = h.body
	rows, err := l.pool.Query(ctx, insertEventSQL+askSQL, args)
	if err == nil {
		_, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) {
			return struct{}{}, row.Scan(&r.Row, &r.State, &r.reason, &r.first, &r.altered)
		})
	}
	if err != nil {
		return recorded{}, fmt.Errorf("store stripe event %s: %w", r.id, err)
	}
	if r.State == StateReceived || r.State == StateUnmapped {
		l.wake()
	}
	return r, nil
}

func (h hit) args(e envelope) pgx.NamedArgs {
	first := ""
	if len(e.subscriptions) > 0 {
		first = e.subscriptions[0]
	}
	return pgx.NamedArgs{
		"account": e.account, "event_id": e.id, "livemode": e.livemode, "type": e.kind, "api_version": e.apiVersion,
		"created": e.created, "at": h.at, "object_kind": e.objectKind, "object_id": e.objectID,
		"subscription": first, "customer": e.customerID, "state": e.state, "reason": e.reason,
		"subscriptions": e.subscriptions, "signed_at": h.signedAt, "secret": h.secret,
		"sha256": h.sha256[:], "bytes": len(h.body), "origin": h.origin,
	}
}

// insertEventSQL writes an event, or finds it and locks it: an update that changes
// nothing, because a plain conflict would not see a row that another transaction
// has only just committed.
const insertEventSQL = `WITH event AS (
	INSERT INTO stripe_events AS e (account, event_id, livemode, type, api_version, created, received_at, body,
		object_kind, object_id, subscription_id, customer_id, state, reason, next_attempt_at, settled_at)
	VALUES (@account, @event_id, @livemode, @type, @api_version, @created, @at, @body,
		@object_kind, @object_id, @subscription, @customer, @state, @reason, @at,
		CASE WHEN @state = '` + StateIgnored + `' THEN @at::timestamptz END)
	ON CONFLICT (account, event_id) DO UPDATE SET event_id = excluded.event_id
	RETURNING e.id, e.state, e.reason, xmax = 0 AS first, sha256(e.body) <> @sha256 AS altered
)`

// askSQL follows a WITH that has an event. It writes the delivery and asks for what
// the event needs looked up.
const askSQL = `, heard AS (
	SELECT * FROM event WHERE first OR @origin <> '` + originSweep + `'
), delivery AS (
	INSERT INTO stripe_deliveries (event, at, signed_at, secret, body_sha256, bytes, origin)
	SELECT id, @at, @signed_at, @secret, @sha256, @bytes, @origin FROM heard
), asked AS (
	INSERT INTO stripe_sync_requests AS r (account, livemode, subscription_id, requested_at, cause, next_attempt_at)
	SELECT @account, @livemode, wanted.id, @at, @type, @at
	FROM heard, unnest(@subscriptions::text[]) AS wanted (id)
	WHERE state IN ('` + StateReceived + `', '` + StateUnmapped + `')
	ORDER BY wanted.id
	ON CONFLICT (account, livemode, subscription_id) DO UPDATE SET ` + askAgainSQL + `
	RETURNING r.subscription_id, r.generation
), concerned AS (
	INSERT INTO stripe_event_subscriptions (event, subscription_id, generation)
	SELECT heard.id, asked.subscription_id, asked.generation FROM heard, asked
	ON CONFLICT (event, subscription_id) DO UPDATE SET generation = excluded.generation
)
SELECT id, state, reason, first, altered FROM event`

// askAgainSQL asks for one look-up more. One that waits because the last failed
// goes on waiting: it will serve this reason too.
const askAgainSQL = `generation = r.generation + 1,
	requested_at = excluded.requested_at, cause = excluded.cause,
	next_attempt_at = CASE WHEN r.synced_generation < r.generation THEN r.next_attempt_at ELSE excluded.next_attempt_at END`
