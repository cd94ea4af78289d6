package subscriptions

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The kinds of news that the outbox holds; News.Body is the data of the event.
const (
	NewsRenewed     = "subscription.renewed"
	NewsInvalidated = "plan.invalidated"
	NewsThreshold   = "usage.threshold_reached"
)

const (
	// mostWorkspaces and mostOfWorkspace bound one pass of Relay.
	mostWorkspaces  = 128
	mostOfWorkspace = 32
	// publishPatience is how long a pass may publish; what it has not published by
	// then stays. Postgres ends a pass that is silent for silentPatience, so that a
	// process that hangs, or whose host is gone, gives its workspaces back.
	publishPatience = 10 * time.Second
	silentPatience  = 20 * time.Second
	// markPatience is how long a pass may take besides publishing.
	markPatience = 10 * time.Second
)

// News is a row of the outbox: an event that is true since its transaction
// committed, and is to be published.
type News struct {
	// ID is the event's id and the message's, a UUIDv7.
	ID          string
	WorkspaceID string
	// Position orders the news of one workspace.
	Position int64
	// Kind is NewsRenewed, NewsInvalidated or NewsThreshold, or what a later version
	// may write.
	Kind string
	// Body is the event's data in JSON, as Postgres writes it.
	Body json.RawMessage
	// At is when the transaction began that made it true.
	At time.Time
}

// Publisher publishes news. It returns an error or nil for each: nil when a
// subscriber will see it, or when it was put aside for good because it can
// never be published; an error when it has to be tried again with the same id. It
// is never given two of one workspace at once.
type Publisher interface {
	PublishNews(ctx context.Context, news []News) []error
}

// Outbox is the news that wait in Postgres. It is safe for concurrent use.
//
//	transaction: lock the workspace's row ─ change ─ INSERT INTO outbox ─ commit
//	                                                        │ wakes (Listen)
//	Relay: lock each workspace's oldest waiting row ◄───────┘
//	       publish, one of each workspace at a time ─ mark ─ commit
//
// Position is drawn when a row is inserted and visible when it is committed, so in
// general rows appear out of order. Within a workspace they do not: whoever
// writes its news holds the lock of its row in workspaces from before the insert
// until the commit. Across workspaces there is no order. Thresholds are written
// without that lock, so one may appear beneath news that a pass has taken; then two
// passes have the workspace, publish the same news in the same order, and the stream
// keeps the first of each. Only the threshold itself comes out of order.
type Outbox struct{ pool *pgxpool.Pool }

// NewOutbox makes an Outbox on a database that schemas.Migrate brought up to date.
func NewOutbox(pool *pgxpool.Pool) *Outbox { return &Outbox{pool: pool} }

// Relayed is what one pass came to.
type Relayed struct {
	// Published are the news that no pass will publish again, Failed those for
	// which the publisher returned an error.
	Published, Failed int
	// Fault is one of those errors.
	Fault error
	// Next is the workspace behind which the next pass has to go on; empty when this one
	// came to the end.
	Next string
	// More is true when a workspace that did not fail may have more news.
	More bool
	// Oldest is when the oldest of the published became true.
	Oldest time.Time
}

// Relay publishes news of the workspaces whose ids come after the given one, in
// Postgres's order, and marks what was published. Any number of processes may call
// it at once: a pass locks the oldest waiting row of each workspace that it takes
// and leaves alone a workspace whose oldest is locked, so one pass at a time has a
// workspace. A workspace's news are published one after the other; at the first
// that fails the rest of them waits for another pass.
//
// When ctx ends the pass publishes no more and marks what it has published. An
// error, or a killed process, leaves published news unmarked: another pass
// publishes them again, with the same id, which the stream drops for as long as
// it remembers ids.
func (o *Outbox) Relay(ctx context.Context, after string, p Publisher) (Relayed, error) {
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishPatience+markPatience)
	defer cancel()
	var pass Relayed
	err := pgx.BeginFunc(work, o.pool, func(tx pgx.Tx) error {
		claimed, err := claim(ctx, tx, after)
		if err != nil || len(claimed) == 0 {
			return err
		}
		w := newWaves(claimed)
		w.publish(ctx, p)
		pass = w.relayed
		return mark(work, tx, w.published)
	})
	if err != nil {
		return Relayed{}, fmt.Errorf("relay the outbox: %w", err)
	}
	return pass, nil
}

// claim locks the oldest waiting row of up to mostWorkspaces workspaces and
// returns the first waiting rows of each, by workspace and in order. It steps through
// the index from workspace to workspace, so its cost is that of what it takes,
// however much else waits.
//
// The lock is taken on the newest version of a row: one that another pass marked
// since this statement began is no longer waiting and is left out. And as a
// workspace's rows are marked in order, a row behind one that still waits waits too.
func claim(ctx context.Context, tx pgx.Tx, after string) ([]News, error) {
	_, err := tx.Exec(ctx, fmt.Sprintf(`SET LOCAL idle_in_transaction_session_timeout = %d`, silentPatience.Milliseconds()))
	if err != nil {
		return nil, fmt.Errorf("bound the transaction: %w", err)
	}
	rows, err := tx.Query(ctx, `
		WITH RECURSIVE oldest AS (
			(SELECT workspace_id, id FROM outbox WHERE published_at IS NULL AND workspace_id > @after
				ORDER BY workspace_id, position LIMIT 1)
			UNION ALL
			SELECT following.* FROM oldest CROSS JOIN LATERAL (
				SELECT workspace_id, id FROM outbox WHERE published_at IS NULL AND workspace_id > oldest.workspace_id
				ORDER BY workspace_id, position LIMIT 1) following),
		claimed AS MATERIALIZED (
			SELECT locked.workspace_id FROM oldest CROSS JOIN LATERAL (
				SELECT workspace_id FROM outbox WHERE id = oldest.id AND published_at IS NULL
				FOR UPDATE SKIP LOCKED) locked
			LIMIT @workspaces)
		SELECT waiting.* FROM claimed CROSS JOIN LATERAL (
			SELECT id::text, workspace_id, position, subject_kind, body::text, created_at FROM outbox
			WHERE workspace_id = claimed.workspace_id AND published_at IS NULL
			ORDER BY position LIMIT @each) waiting
		ORDER BY workspace_id, position`,
		pgx.NamedArgs{"after": after, "workspaces": mostWorkspaces, "each": mostOfWorkspace})
	if err != nil {
		return nil, fmt.Errorf("claim news: %w", err)
	}
	claimed, err := pgx.CollectRows(rows, scanNews)
	if err != nil {
		return nil, fmt.Errorf("claim news: %w", err)
	}
	return claimed, nil
}

func scanNews(row pgx.CollectableRow) (News, error) {
	var n News
	var body string
	err := row.Scan(&n.ID, &n.WorkspaceID, &n.Position, &n.Kind, &body, &n.At)
	n.Body, n.At = json.RawMessage(body), n.At.UTC()
	return n, err
}

func mark(ctx context.Context, tx pgx.Tx, ids []string) error {
	_, err := tx.Exec(ctx, `UPDATE outbox SET published_at = clock_timestamp() WHERE id = ANY(@ids::text[]::uuid[])`,
		pgx.NamedArgs{"ids": ids})
	if err != nil {
		return fmt.Errorf("mark %d published news: %w", len(ids), err)
	}
	return nil
}
