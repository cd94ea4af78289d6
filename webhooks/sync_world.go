package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
)

const syncCursor = "subscriptions"

// What a comparison is at.
const (
	phaseListing = "listing"
	phaseKnown   = "known"
)

// syncPosition is how far a world was compared.
type syncPosition struct {
	// Phase is empty between two comparisons. After is the last subscription of the phase.
	Phase string `json:"phase"`
	After string `json:"after"`
	// Finished is when a comparison last reached its end, zero if none ever did.
	Finished time.Time `json:"finished"`
	// Requested asks for one before the interval is over.
	Requested bool `json:"requested"`
}

func (p syncPosition) due(now time.Time, interval time.Duration) bool {
	return p.Phase != "" || p.Requested || now.Sub(p.Finished) >= interval
}

func (s *Sync) position(ctx context.Context, w world) (syncPosition, error) {
	var p syncPosition
	_, err := readCursor(ctx, s.ledger.pool, w, syncCursor, &p)
	return p, err
}

// requestSync has the next round of whoever syncs compare a world.
func requestSync(ctx context.Context, q queryer, w world) error {
	_, err := q.Exec(ctx, `INSERT INTO stripe_cursors (account, livemode, name, position)
		VALUES (@account, @livemode, '`+syncCursor+`', '{"requested": true}')
		ON CONFLICT (account, livemode, name) DO UPDATE SET position = stripe_cursors.position || excluded.position`, w.args())
	if err != nil {
		return fmt.Errorf("ask for a comparison of %s: %w", w, err)
	}
	return nil
}

// comparison is one of a world under way.
type comparison struct {
	*Sync
	world    world
	position syncPosition
	report   *SyncReport
	// listed are those that the list had, whole whether that is all of them: a comparison
	// that goes on behind an interruption does not know.
	listed   map[string]bool
	whole    bool
	expected int
	first    bool
	// young is how long a delivery may be on its way before a difference counts.
	young time.Duration
}

// syncWorld compares one world. A difference counts once a delivery cannot be on its way
// any more: young is how long that is.
func (s *Sync) syncWorld(ctx context.Context, w world, young time.Duration, report *SyncReport) error {
	p, err := s.position(ctx, w)
	if err != nil {
		return err
	}
	c := comparison{Sync: s, world: w, position: p, report: report, listed: map[string]bool{}, first: p.Finished.IsZero(), young: young}
	if c.first {
		c.young = 0
	}
	if c.expected, err = s.ledger.countKnown(ctx, w); err != nil {
		return err
	}
	if c.position.Phase == "" {
		c.whole = true
		c.position.Phase, c.position.After, c.position.Requested = phaseListing, "", false
	}
	if c.position.Phase == phaseListing {
		if err := c.list(ctx); err != nil {
			return err
		}
	}
	if err := c.lookUpKnown(ctx); err != nil {
		return err
	}
	return writeCursor(ctx, s.ledger.pool, w, syncCursor, syncPosition{Finished: s.now().UTC()})
}

// list compares what Stripe lists.
func (c *comparison) list(ctx context.Context) error {
	query := url.Values{"status": {"all"}}
	if c.position.After != "" {
		query.Set("starting_after", c.position.After)
	}
	err := c.pages.each(ctx, call{account: c.world.account, path: "/v1/subscriptions", query: query}, func(page listPage) (bool, error) {
		return true, c.comparePage(ctx, page)
	})
	var refused *apiError
	if errors.As(err, &refused) && refused.status == http.StatusBadRequest && c.position.After != "" {
		// What the interrupted one stopped at is not there any more.
		c.position.After = ""
		return c.list(ctx)
	}
	if err != nil {
		return err
	}
	c.position.Phase, c.position.After = phaseKnown, ""
	return writeCursor(ctx, c.ledger.pool, c.world, syncCursor, c.position)
}

func (c *comparison) comparePage(ctx context.Context, page listPage) error {
	seen := make([]seenSubscription, 0, len(page.objects))
	for _, raw := range page.objects {
		s, err := see(raw)
		if err != nil {
			return err
		}
		seen = append(seen, s)
		c.listed[s.id] = true
	}
	suspects, differ, err := c.suspects(ctx, seen)
	if err == nil && differ && c.young > 0 {
		// The delivery that tells of it may be on its way. Where it was none, the others
		// are not waited for.
		rest(ctx, c.young)
		if suspects, differ, err = c.suspects(ctx, seen); differ {
			c.young = 0
		}
	}
	if err != nil {
		return err
	}
	c.report.Listed += len(seen)
	c.report.Compared += len(seen) - len(suspects)
	c.position.After = page.last
	return c.lookUp(ctx, suspects, "")
}

// see reads a listed subscription. One that cannot be read is looked up, and parked by
// that with its reason.
func see(raw json.RawMessage) (seenSubscription, error) {
	o, err := parseObject("subscription", raw)
	if err != nil {
		return seenSubscription{}, err
	}
	id, err := o.ownID()
	if err != nil {
		return seenSubscription{}, err
	}
	s := seenSubscription{id: id}
	if object, err := decodeSubscription(raw); err == nil {
		s.object = &object
	}
	return s, nil
}

// knownPage is how many known subscriptions are asked for at once.
const knownPage = 100

// lookUpKnown asks for those that are known, are not over, and were not listed. Behind an
// interruption it is not known what was listed: only those are asked for that a list
// never has.
func (c *comparison) lookUpKnown(ctx context.Context) error {
	for {
		ids, err := c.ledger.knownAfter(ctx, c.world, c.position.After, !c.whole)
		if err != nil || len(ids) == 0 {
			return err
		}
		c.position.After = ids[len(ids)-1]
		var missing []string
		for _, id := range ids {
			if !c.listed[id] {
				missing = append(missing, id)
			}
		}
		if err := c.lookUp(ctx, missing, ""); err != nil {
			return err
		}
	}
}

const knownAfterSQL = `SELECT r.subscription_id FROM stripe_sync_requests r
	WHERE r.account = @account AND r.livemode = @livemode AND r.subscription_id > @after
		AND (r.outcome NOT IN ('` + StateDone + `', '` + StateIgnored + `') OR EXISTS (
			SELECT FROM subscriptions s WHERE s.source = 'stripe' AND s.closed_at IS NULL AND (s.test_clock OR NOT @unlisted)
				AND (s.account, s.livemode, s.source_id) = (r.account, r.livemode, r.subscription_id)))
	ORDER BY r.subscription_id LIMIT @limit`

// knownAfter are the next subscriptions that are not over; of unlisted ones those that no
// list has.
func (l *Ledger) knownAfter(ctx context.Context, w world, after string, unlisted bool) ([]string, error) {
	args := w.args()
	args["after"], args["unlisted"], args["limit"] = after, unlisted, knownPage
	rows, err := l.pool.Query(ctx, knownAfterSQL, args)
	if err != nil {
		return nil, fmt.Errorf("list known subscriptions: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list known subscriptions: %w", err)
	}
	return ids, nil
}

func (l *Ledger) countKnown(ctx context.Context, w world) (int, error) {
	rows, err := l.pool.Query(ctx, `SELECT count(*) FROM stripe_sync_requests
		WHERE account = @account AND livemode = @livemode`, w.args())
	if err != nil {
		return 0, fmt.Errorf("count known subscriptions: %w", err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	if err != nil {
		return 0, fmt.Errorf("count known subscriptions: %w", err)
	}
	return n, nil
}
