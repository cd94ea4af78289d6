package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrUnknownEvent means that no event of that id was ever stored.
var ErrUnknownEvent = errors.New("unknown stripe event")

// Event is one event as a listing shows it. All instants are UTC.
type Event struct {
	// Row orders events by when they were first stored, and continues a listing.
	Row        int64  `json:"-"`
	ID         string `json:"id"`
	Type       string `json:"type"`
	APIVersion string `json:"api_version"`
	Account    string `json:"account"`
	// Livemode is nil where the body does not say.
	Livemode *bool `json:"livemode"`
	// Created is Stripe's clock, nil where the body does not say; ReceivedAt is ours.
	Created     *time.Time `json:"created"`
	ReceivedAt  time.Time  `json:"received_at"`
	State       string     `json:"state"`
	Reason      string     `json:"reason"`
	Attempts    int        `json:"attempts"`
	WorkspaceID *string    `json:"workspace_id"`
	// SourceID is the first subscription that it concerns, else its object.
	SourceID string `json:"source_id"`
	// Deliveries is how often it arrived.
	Deliveries int `json:"deliveries"`
}

const eventColumns = `e.id, e.event_id, e.type, e.api_version, e.account, e.livemode, e.created, e.received_at,
	e.state, e.reason, e.attempts, e.workspace_id, coalesce(nullif(e.subscription_id, ''), e.object_id),
	(SELECT count(*) FROM stripe_deliveries d WHERE d.event = e.id)`

func scanEvent(row pgx.CollectableRow) (Event, error) { return scanEventAnd(row) }

// scanEventAnd scans the columns that a query has after the event's own, too.
func scanEventAnd(row pgx.CollectableRow, more ...any) (Event, error) {
	var e Event
	err := row.Scan(append([]any{
		&e.Row, &e.ID, &e.Type, &e.APIVersion, &e.Account, &e.Livemode, &e.Created, &e.ReceivedAt,
		&e.State, &e.Reason, &e.Attempts, &e.WorkspaceID, &e.SourceID, &e.Deliveries,
	}, more...)...)
	e.ReceivedAt = e.ReceivedAt.UTC()
	if e.Created != nil {
		*e.Created = e.Created.UTC()
	}
	return e, err
}

// defaultLimit is how many events a listing has unless told.
const defaultLimit = 100

// EventFilter chooses events. The zero EventFilter is the newest 100 of all.
type EventFilter struct {
	// State is one of the states, empty for all.
	State string
	// Limit is the most that are returned, 0 for 100.
	Limit int
	// Before continues a listing: the Row of the last event seen, 0 to begin.
	Before int64
}

// Events lists events, newest first.
func (l *Ledger) Events(ctx context.Context, f EventFilter) ([]Event, error) {
	if f.Limit <= 0 {
		f.Limit = defaultLimit
	}
	rows, err := l.pool.Query(ctx, `SELECT `+eventColumns+` FROM stripe_events e
		WHERE (@state = '' OR e.state = @state) AND (@before = 0 OR e.id < @before)
		ORDER BY e.id DESC LIMIT @limit`,
		pgx.NamedArgs{"state": f.State, "before": f.Before, "limit": f.Limit})
	if err != nil {
		return nil, fmt.Errorf("list stripe events: %w", err)
	}
	events, err := pgx.CollectRows(rows, scanEvent)
	if err != nil {
		return nil, fmt.Errorf("list stripe events: %w", err)
	}
	return events, nil
}

// Delivery is one time that an event arrived.
type Delivery struct {
	At time.Time `json:"at"`
	// SignedAt and Secret, a fingerprint, are those of its signature, if it had one.
	SignedAt *time.Time `json:"signed_at"`
	Secret   string     `json:"secret"`
	// SHA256 is the body's hash in hexadecimal, Bytes its length.
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
	// Origin is webhook, sweep or replay.
	Origin string `json:"origin"`
}

// StoredEvent is an event with its first body, byte by byte, and its deliveries, oldest
// first.
type StoredEvent struct {
	Event
	Body       []byte
	Deliveries []Delivery
}

// Event returns the events of an id: one, or one for each connected account that
// has it. ErrUnknownEvent means that there is none.
func (l *Ledger) Event(ctx context.Context, id string) ([]StoredEvent, error) {
	rows, err := l.pool.Query(ctx, `SELECT `+eventColumns+`, e.body FROM stripe_events e
		WHERE e.event_id = @id ORDER BY e.id`, pgx.NamedArgs{"id": id})
	if err != nil {
		return nil, fmt.Errorf("read stripe event %s: %w", id, err)
	}
	events, err := pgx.CollectRows(rows, scanStored)
	if err != nil {
		return nil, fmt.Errorf("read stripe event %s: %w", id, err)
	}
	if len(events) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrUnknownEvent, id)
	}
	for i := range events {
		if events[i].Deliveries, err = l.deliveries(ctx, events[i].Row); err != nil {
			return nil, fmt.Errorf("read deliveries of stripe event %s: %w", id, err)
		}
	}
	return events, nil
}

func scanStored(row pgx.CollectableRow) (StoredEvent, error) {
	var (
		s   StoredEvent
		err error
	)
	s.Event, err = scanEventAnd(row, &s.Body)
	return s, err
}

func (l *Ledger) deliveries(ctx context.Context, event int64) ([]Delivery, error) {
	rows, err := l.pool.Query(ctx, `SELECT at, signed_at, secret, encode(body_sha256, 'hex'), bytes, origin
		FROM stripe_deliveries WHERE event = @event ORDER BY id`, pgx.NamedArgs{"event": event})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Delivery, error) {
		var d Delivery
		err := row.Scan(&d.At, &d.SignedAt, &d.Secret, &d.SHA256, &d.Bytes, &d.Origin)
		d.At = d.At.UTC()
		if d.SignedAt != nil {
			*d.SignedAt = d.SignedAt.UTC()
		}
		return d, err
	})
}

// StateCount is how many events are in a state, and since when the oldest of them
// is known.
type StateCount struct {
	State  string
	Count  int64
	Oldest time.Time
}

// Counts has an entry for each state that an event is in, by name. An old one that
// is unmapped or parked is something that nobody has taken care of.
func (l *Ledger) Counts(ctx context.Context) ([]StateCount, error) {
	rows, err := l.pool.Query(ctx, `SELECT c.state, c.count, e.received_at
		FROM (SELECT state, count(*), min(id) AS oldest FROM stripe_events GROUP BY state) c
		JOIN stripe_events e ON e.id = c.oldest ORDER BY c.state`)
	if err != nil {
		return nil, fmt.Errorf("count stripe events: %w", err)
	}
	counts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (StateCount, error) {
		var c StateCount
		err := row.Scan(&c.State, &c.Count, &c.Oldest)
		c.Oldest = c.Oldest.UTC()
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("count stripe events: %w", err)
	}
	return counts, nil
}
