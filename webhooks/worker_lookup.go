package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// lookup is one that this process has claimed.
type lookup struct {
	key syncKey
	// generation is the one that it serves: all reasons to look until it was claimed.
	generation int64
	attempts   int
	cause      string
}

// errOvertaken means that a look-up that began later was settled first.
var errOvertaken = errors.New("a later look-up was faster")

// claimSQL takes the look-up that is due the longest. It is due again after the lease,
// unless it is settled by then: so whoever has it may be killed.
const claimSQL = `UPDATE stripe_sync_requests r SET next_attempt_at = @until
	FROM (SELECT account, livemode, subscription_id FROM stripe_sync_requests
		WHERE synced_generation < generation AND next_attempt_at <= @now
		ORDER BY next_attempt_at LIMIT 1 FOR UPDATE SKIP LOCKED) due
	WHERE (r.account, r.livemode, r.subscription_id) = (due.account, due.livemode, due.subscription_id)
	RETURNING r.account, r.livemode, r.subscription_id, r.generation, r.attempts, r.cause`

func (l *Ledger) claim(ctx context.Context, now time.Time, lease time.Duration) (*lookup, error) {
	rows, err := l.pool.Query(ctx, claimSQL, pgx.NamedArgs{"now": now, "until": now.Add(lease)})
	if err != nil {
		return nil, fmt.Errorf("claim a look-up: %w", err)
	}
	claimed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*lookup, error) {
		var j lookup
		err := row.Scan(&j.key.Account, &j.key.Livemode, &j.key.SubscriptionID, &j.generation, &j.attempts, &j.cause)
		return &j, err
	})
	if err != nil || len(claimed) == 0 {
		return nil, err
	}
	return claimed[0], nil
}

// oneLookup takes a look-up that is due and carries it out, and reports whether there
// was one. An error is one of the database.
func (w *Worker) oneLookup(ctx context.Context) (bool, error) {
	j, err := w.ledger.claim(ctx, w.now().UTC(), w.lease)
	if err != nil || j == nil {
		return false, err
	}
	w.probe.at("claimed")
	if err := w.carryOut(ctx, *j); err != nil {
		return true, w.failed(ctx, *j, err)
	}
	return true, nil
}

func (w *Worker) carryOut(ctx context.Context, j lookup) error {
	f, err := w.find(ctx, j.key)
	switch {
	case errors.Is(err, errUnseen):
		return w.conclude(ctx, j, conclusion{verdict: verdict{state: StateUnmapped, reason: err.Error()}})
	case err != nil:
		return err
	}
	if f.Subscription.ID != j.key.SubscriptionID || f.Subscription.Livemode != j.key.Livemode {
		return &undecodable{"subscription", "is another one than was asked for"}
	}
	if err := w.findSessions(ctx, j.key, &f); err != nil {
		return err
	}
	w.probe.at("found")
	return w.write(ctx, j, f)
}

// findSessions asks for the purchases of a subscription where nothing else that is
// nearer says whose it is.
func (w *Worker) findSessions(ctx context.Context, key syncKey, f *finding) error {
	if _, there := f.Subscription.Metadata[workspaceField]; there || !f.fetched {
		return nil
	}
	o, err := ownerOf(ctx, w.ledger.pool, key, *f)
	if err != nil || o.workspace != "" && o.cause == "" || o.learned != "" {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	f.Sessions, err = w.api.sessionsOf(ctx, key)
	return err
}
