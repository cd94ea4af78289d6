package webhooks

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	sweepCursor = "events"
	// sweepWindow is how much of a gap is listed at once: an interruption costs no more.
	sweepWindow = 6 * time.Hour
	// ahead is how far beyond this clock an event may be made. What is later was made by
	// a test clock.
	ahead = 5 * time.Minute
)

// sweepPosition is how far a world was swept.
type sweepPosition struct {
	// Through is the instant up to which all that Stripe has was seen.
	Through time.Time `json:"through"`
	// Finished is when the last sweep reached its end.
	Finished time.Time `json:"finished"`
}

func (s *Sweep) sweepWorld(ctx context.Context, w world, ago time.Duration, report *SweepReport) error {
	now := s.now().UTC()
	var position sweepPosition
	known, err := readCursor(ctx, s.ledger.pool, w, sweepCursor, &position)
	if err != nil || known && now.Sub(position.Finished) < ago {
		return err
	}
	since, lost := position.Through.Add(-s.options.Overlap), false
	if !known {
		if since, err = s.ledger.firstEvent(ctx, w, now); err != nil {
			return err
		}
		since = since.Add(-s.options.Overlap)
	}
	if earliest := now.Add(-kept); since.Before(earliest) {
		lost, since = known, earliest
	}
	if lost {
		report.Lost = append(report.Lost, w.String())
		s.log.ErrorContext(ctx, "stripe's events were not swept for longer than stripe keeps them: all subscriptions are compared",
			"account", w.account, "livemode", w.livemode, "through", position.Through)
		if err := requestSync(ctx, s.ledger.pool, w); err != nil {
			return err
		}
	}
	if report.Since.IsZero() || since.Before(report.Since) {
		report.Since = since
	}
	return s.sweepFrom(ctx, w, span{since, now}, report)
}

// span is a stretch of time, its end not included.
type span struct{ from, to time.Time }

// sweepFrom goes through the windows, the oldest first, and notes each that is done. The
// last has no end: what a test clock makes lies ahead.
func (s *Sweep) sweepFrom(ctx context.Context, w world, all span, report *SweepReport) error {
	for from := all.from; ; {
		to := from.Add(sweepWindow)
		last := !to.Before(all.to)
		query := url.Values{"created[gte]": {strconv.FormatInt(from.Unix(), 10)}}
		if !last {
			query.Set("created[lt]", strconv.FormatInt(to.Unix(), 10))
		}
		err := s.pages.each(ctx, call{account: w.account, path: "/v1/events", query: query}, func(page listPage) (bool, error) {
			return true, s.compare(ctx, w, page.objects, report)
		})
		if err != nil {
			return err
		}
		position := sweepPosition{Through: to}
		if last {
			position = sweepPosition{Through: all.to, Finished: all.to}
		}
		if err := writeCursor(ctx, s.ledger.pool, w, sweepCursor, position); err != nil || last {
			return err
		}
		from = to
	}
}

// listedEvent is an event of Stripe's list.
type listedEvent struct {
	id, kind string
	body     []byte
}

// compare records those of a page that are not on record.
func (s *Sweep) compare(ctx context.Context, w world, objects []json.RawMessage, report *SweepReport) error {
	var due []listedEvent
	var ids []string
	for _, raw := range objects {
		e, age, err := s.read(w, raw)
		if err != nil {
			return err
		}
		if !selected(e.kind) {
			continue
		}
		report.Listed++
		if age > -ahead && age < s.options.Young {
			report.Young++
			continue
		}
		due, ids = append(due, e), append(ids, e.id)
	}
	known, err := s.ledger.onRecord(ctx, w, ids)
	if err != nil {
		return err
	}
	for _, e := range due {
		if known[e.id] {
			continue
		}
		h := hit{body: e.body, sha256: sha256.Sum256(e.body), at: s.now().UTC(), origin: originSweep}
		stored, err := s.ledger.record(ctx, h)
		if err != nil {
			return err
		}
		if stored.first {
			report.Repaired[e.kind]++
			s.repairs.Add(1)
		}
	}
	return nil
}

// read reads an event as far as it is needed. What Stripe lists of a connected account
// need not name it, as a delivery does: the record has to.
func (s *Sweep) read(w world, raw json.RawMessage) (listedEvent, time.Duration, error) {
	o, err := parseObject("event", raw)
	if err != nil {
		return listedEvent{}, 0, err
	}
	e := listedEvent{id: o.text("id"), kind: o.text("type"), body: raw}
	if w.account != "" && o.text("account") == "" {
		if o.fields["account"], err = json.Marshal(w.account); err != nil {
			return listedEvent{}, 0, fmt.Errorf("name the account of an event: %w", err)
		}
		if e.body, err = json.Marshal(o.fields); err != nil {
			return listedEvent{}, 0, fmt.Errorf("name the account of an event: %w", err)
		}
	}
	age := s.options.Young
	if created := o.instant("created"); created != nil {
		age = s.now().Sub(*created)
	}
	return e, age, nil
}

// onRecord finds which events are.
func (l *Ledger) onRecord(ctx context.Context, w world, ids []string) (map[string]bool, error) {
	rows, err := l.pool.Query(ctx, `SELECT event_id FROM stripe_events WHERE event_id = ANY(@ids) AND account = @account`,
		pgx.NamedArgs{"ids": ids, "account": w.account})
	if err != nil {
		return nil, fmt.Errorf("look for stripe events: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for stripe events: %w", err)
	}
	known := make(map[string]bool, len(found))
	for _, id := range found {
		known[id] = true
	}
	return known, nil
}

// firstEvent is when the first event on record was made: before that nobody listened,
// and nothing can be missing. Without any it is now.
func (l *Ledger) firstEvent(ctx context.Context, w world, now time.Time) (time.Time, error) {
	args := w.args()
	args["now"] = now
	rows, err := l.pool.Query(ctx, `SELECT coalesce(created, received_at) FROM stripe_events
		WHERE account = @account AND livemode = @livemode ORDER BY id LIMIT 1`, args)
	if err != nil {
		return time.Time{}, fmt.Errorf("find the first stripe event: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	if err != nil {
		return time.Time{}, fmt.Errorf("find the first stripe event: %w", err)
	}
	if len(found) == 0 || found[0].After(now) {
		return now, nil
	}
	return found[0].UTC(), nil
}
