package subscriptions

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// The numbers of rows in a listing.
const (
	DefaultPageSize = 100
	MaxPageSize     = 1000
)

// Page is a part of a listing.
type Page struct {
	// After is the last id of the page before, empty for the first.
	After string
	// Limit is 1 to MaxPageSize; 0 is DefaultPageSize.
	Limit int
}

func (p Page) size() int {
	if p.Limit <= 0 {
		return DefaultPageSize
	}
	return min(p.Limit, MaxPageSize)
}

// Workspace is a workspace that the database knows.
type Workspace struct {
	ID string
	// Revision rises with everything that changes the workspace's plan info.
	Revision int64
	// Subscription is the row that the workspace points to, nil without one. It
	// may be over: PlanInfo tells what holds now.
	Subscription *Subscription
	// Pinned is the subscription that counts whenever it is live, nil without one.
	Pinned    *SubscriptionKey
	CreatedAt time.Time
	UpdatedAt time.Time
}

// SubscriptionHistory is a period with its amendments, oldest first.
type SubscriptionHistory struct {
	Subscription
	Changes []Change
}

const workspaceColumns = `id, revision, active_subscription_id::text, created_at, updated_at,
	pinned_source, pinned_account, pinned_livemode, pinned_source_id`

// pointed is a workspace whose subscription is yet to be read.
type pointed struct {
	Workspace
	active *string
}

func scanWorkspace(row pgx.CollectableRow) (pointed, error) {
	var (
		w      pointed
		pinned pinnedKey
	)
	err := row.Scan(append([]any{&w.ID, &w.Revision, &w.active, &w.CreatedAt, &w.UpdatedAt}, pinned.columns()...)...)
	w.Pinned = pinned.key()
	w.CreatedAt, w.UpdatedAt = w.CreatedAt.UTC(), w.UpdatedAt.UTC()
	return w, err
}

// pinnedKey are the columns that name the pinned subscription: all NULL, or none.
type pinnedKey struct {
	source, account, sourceID *string
	livemode                  *bool
}

func (k *pinnedKey) columns() []any { return []any{&k.source, &k.account, &k.livemode, &k.sourceID} }

func (k *pinnedKey) key() *SubscriptionKey {
	if k.source == nil {
		return nil
	}
	return &SubscriptionKey{Source: Source(*k.source), Account: *k.account, Livemode: *k.livemode, SourceID: *k.sourceID}
}

// Workspaces lists workspaces by id, a page at a time.
func (s *Store) Workspaces(ctx context.Context, page Page) ([]Workspace, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+workspaceColumns+` FROM workspaces
		WHERE id > @after ORDER BY id LIMIT @limit`, pgx.NamedArgs{"after": page.After, "limit": page.size()})
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	return s.withSubscriptions(ctx, rows)
}

// Workspace reads one workspace, or ErrUnknownWorkspace.
func (s *Store) Workspace(ctx context.Context, workspace string) (Workspace, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+workspaceColumns+` FROM workspaces WHERE id = @id`,
		pgx.NamedArgs{"id": workspace})
	if err != nil {
		return Workspace{}, fmt.Errorf("read workspace %s: %w", workspace, err)
	}
	found, err := s.withSubscriptions(ctx, rows)
	if err != nil {
		return Workspace{}, err
	}
	if len(found) == 0 {
		return Workspace{}, fmt.Errorf("workspace %s: %w", workspace, ErrUnknownWorkspace)
	}
	return found[0], nil
}

func (s *Store) withSubscriptions(ctx context.Context, rows pgx.Rows) ([]Workspace, error) {
	found, err := pgx.CollectRows(rows, scanWorkspace)
	if err != nil {
		return nil, fmt.Errorf("read workspaces: %w", err)
	}
	var ids []string
	for _, w := range found {
		if w.active != nil {
			ids = append(ids, *w.active)
		}
	}
	subscriptions, err := s.subscriptionsByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	list := make([]Workspace, len(found))
	for i, w := range found {
		list[i] = w.Workspace
		if w.active == nil {
			continue
		}
		if row, ok := subscriptions[*w.active]; ok {
			list[i].Subscription = &row
		}
	}
	return list, nil
}

func (s *Store) subscriptionsByID(ctx context.Context, ids []string) (map[string]Subscription, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := s.pool.Query(ctx, `SELECT `+subscriptionColumns+` FROM subscriptions WHERE id = ANY(@ids::uuid[])`,
		pgx.NamedArgs{"ids": ids})
	if err != nil {
		return nil, fmt.Errorf("read subscriptions: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanSubscription)
	if err != nil {
		return nil, fmt.Errorf("read subscriptions: %w", err)
	}
	byID := make(map[string]Subscription, len(found))
	for _, row := range found {
		byID[row.ID] = row
	}
	return byID, nil
}

// Subscriptions lists the newest periods of a workspace, newest first, each with
// its amendments. It is empty for a workspace that never had any.
func (s *Store) Subscriptions(ctx context.Context, workspace string, limit int) ([]SubscriptionHistory, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+subscriptionColumns+` FROM subscriptions
		WHERE workspace_id = @workspace ORDER BY period_start DESC, id DESC LIMIT @limit`,
		pgx.NamedArgs{"workspace": workspace, "limit": Page{Limit: limit}.size()})
	if err != nil {
		return nil, fmt.Errorf("list subscriptions of %s: %w", workspace, err)
	}
	found, err := pgx.CollectRows(rows, scanSubscription)
	if err != nil {
		return nil, fmt.Errorf("list subscriptions of %s: %w", workspace, err)
	}
	ids := make([]string, len(found))
	for i, row := range found {
		ids[i] = row.ID
	}
	changes, err := changesOf(ctx, s.pool, ids)
	if err != nil {
		return nil, err
	}
	list := make([]SubscriptionHistory, len(found))
	for i, row := range found {
		list[i] = SubscriptionHistory{Subscription: row, Changes: append([]Change{}, changes[row.ID]...)}
	}
	return list, nil
}
