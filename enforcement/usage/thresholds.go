package usage

import (
	"context"
	"encoding/json"
	"fmt"
	"math/bits"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// The percentages that are told of, the same as those of executions.
const (
	near = 80
	full = 100
)

// threshold is the least count that is so many percent of the limit; nil where there is
// none, or nothing to be near to.
func (t terms) threshold(percent uint64) *int64 {
	limit, bounded := t.limit.Value()
	if !bounded || limit == 0 {
		return nil
	}
	high, low := bits.Mul64(uint64(limit), percent)
	quotient, rest := bits.Div64(high, low, 100)
	if rest > 0 {
		quotient++
	}
	at := int64(quotient)
	return &at
}

// sighting is a threshold that a change has reached.
type sighting struct {
	terms
	percent int
	used    int64
}

// noted names a sighting that nobody else has told of.
type noted struct {
	Workspace, Feature string
	Percent            int16
}

// tell puts the thresholds into the outbox, each once in a period and for a value of the
// limit. The caller holds the counters' rows, so that nobody notes the same at this moment.
func (c *Counters) tell(ctx context.Context, tx pgx.Tx, all []sighting) error {
	if len(all) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, `
		INSERT INTO usage_thresholds (workspace_id, usage_epoch, limit_name, limit_value, percent, used, period_start, period_end)
		SELECT * FROM unnest(@workspaces::text[], @epochs::text[], @features::text[], @limits::bigint[], @percents::smallint[],
			@used::bigint[], @starts::timestamptz[], @ends::timestamptz[])
		ON CONFLICT DO NOTHING
		RETURNING workspace_id, limit_name, percent`, sightingArgs(all))
	if err != nil {
		return fmt.Errorf("note thresholds of workspace %s: %w", all[0].workspace, err)
	}
	fresh, err := pgx.CollectRows(rows, pgx.RowToStructByPos[noted])
	if err != nil {
		return fmt.Errorf("note thresholds of workspace %s: %w", all[0].workspace, err)
	}
	first := make(map[noted]bool, len(fresh))
	for _, n := range fresh {
		first[n] = true
	}
	var news []subscriptions.News
	for _, s := range all {
		if !first[noted{s.workspace, s.feature, int16(s.percent)}] {
			continue
		}
		n, err := s.news()
		if err != nil {
			return err
		}
		news = append(news, n)
	}
	return subscriptions.Enqueue(ctx, tx, news...)
}

func (s sighting) news() (subscriptions.News, error) {
	limit, _ := s.limit.Value()
	body, err := json.Marshal(schemas.UsageThresholdReached{
		WorkspaceID: s.workspace, Limit: s.feature, Percent: s.percent, Used: s.used, LimitValue: limit,
		Period: schemas.EventsPeriod{Start: s.plan.Period.Start.UTC(), End: s.plan.Period.End.UTC()},
	})
	if err != nil {
		return subscriptions.News{}, fmt.Errorf("encode threshold of workspace %s: %w", s.workspace, err)
	}
	return subscriptions.News{WorkspaceID: s.workspace, Kind: subscriptions.NewsThreshold, Body: body}, nil
}

func sightingArgs(all []sighting) pgx.NamedArgs {
	return pgx.NamedArgs{
		"workspaces": column(all, func(s sighting) string { return s.workspace }),
		"epochs":     column(all, func(s sighting) string { return s.plan.UsageEpoch }),
		"features":   column(all, func(s sighting) string { return s.feature }),
		"limits":     column(all, func(s sighting) *int64 { return s.limit.Pointer() }),
		"percents":   column(all, func(s sighting) int16 { return int16(s.percent) }),
		"used":       column(all, func(s sighting) int64 { return s.used }),
		"starts":     column(all, func(s sighting) time.Time { return s.plan.Period.Start }),
		"ends":       column(all, func(s sighting) time.Time { return s.plan.Period.End }),
	}
}

// column is one field of each, as unnest takes it.
func column[T, V any](all []T, of func(T) V) []V {
	values := make([]V, len(all))
	for i, v := range all {
		values[i] = of(v)
	}
	return values
}
