package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// thresholds are the percentages that are told of, lowest first.
var thresholds = []int{80, 100}

// threshold names what is told of once. The epoch is that of the subscription's
// row, or the default one without a subscription.
type threshold struct {
	workspace    string
	subscription string
	defaultEpoch string
	limit        int64
	percent      int
}

// sighting is a decision that shows a threshold reached.
type sighting struct {
	threshold
	used       int64
	start, end time.Time
}

// sightings are what the decisions show, each threshold once: where it was
// reached with the least in use. So it does not matter how the decisions were
// batched, and a limit that was in force for a moment counts too.
//
// Used is the counter that the decision was taken on. A denial for an exhausted
// quota shows it as well as an allow does, and a shadow decision as well as
// any other, since it is measured against the same counter.
func sightings(decisions []Decision) []sighting {
	first := make(map[threshold]sighting)
	for _, d := range decisions {
		limit, bounded := d.Limits.MaxExecutions.Value()
		used, shown := usedOf(d, limit)
		if !shown || !bounded || d.PeriodEnd.IsZero() {
			continue
		}
		for _, percent := range thresholds {
			if !reaches(used, limit, percent) {
				continue
			}
			t := threshold{workspace: d.WorkspaceID, defaultEpoch: d.DefaultEpoch, limit: limit, percent: percent}
			if d.SubscriptionID != nil {
				t.subscription, t.defaultEpoch = *d.SubscriptionID, ""
			}
			if known, ok := first[t]; !ok || used < known.used {
				first[t] = sighting{threshold: t, used: used, start: d.PeriodStart, end: d.PeriodEnd}
			}
		}
	}
	all := make([]sighting, 0, len(first))
	for _, s := range first {
		all = append(all, s)
	}
	return all
}

// usedOf is how much of the execution quota a decision shows to be in use; most
// denials tell of another limit, and show nothing.
func usedOf(d Decision, limit int64) (used int64, shown bool) {
	switch {
	case d.Kind != schemas.KindAdmission:
		return 0, false
	case d.Code == 0:
		return d.Used, d.Used > 0
	case d.Limit == schemas.LimitExecutions:
		return d.Used, true
	default:
		return limit, slices.Contains(d.Exhausted, schemas.LimitExecutions)
	}
}

// reaches reports whether so much in use is so many percent of the limit. Of a limit
// of 0 there is only all, and it is reached by whoever asks.
func reaches(used, limit int64, percent int) bool {
	if limit <= 0 {
		return percent == 100
	}
	usedHigh, usedLow := bits.Mul64(uint64(max(used, 0)), 100)
	high, low := bits.Mul64(uint64(limit), uint64(percent))
	return usedHigh > high || usedHigh == high && usedLow >= low
}

// reached is a threshold that nobody was told of before.
type reached struct {
	Workspace  string
	Percent    int
	Used       int64
	LimitValue int64
	Start, End time.Time
}

// queueThresholds notes the thresholds that the batch reaches. The ones it returns
// are known once the statements were sent.
func queueThresholds(to *pgx.Batch, b Batch) *[]reached {
	fresh := new([]reached)
	collect := func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[reached])
		*fresh = append(*fresh, found...)
		return err
	}
	if seen := sightings(b.Decisions); len(seen) > 0 {
		to.Queue(noteSightings, sightingArgs(seen)).Query(collect)
	}
	if touched := touched(b); len(touched) > 0 {
		to.Queue(noteStandings, pgx.NamedArgs{
			"workspaces": touched, "percents": thresholds, "limit_name": schemas.LimitExecutions,
		}).Query(collect)
	}
	return fresh
}

// touched are the workspaces whose usage or terms the batch changed.
func touched(b Batch) []string {
	names := slices.Clone(b.Invalidated)
	for _, d := range b.Decisions {
		if d.admits() && d.SubscriptionID != nil {
			names = append(names, d.WorkspaceID)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

const noteSightings = `
	insert into usage_thresholds (workspace_id, usage_epoch, limit_name, limit_value, percent, used, period_start, period_end)
	select t.workspace_id, coalesce(s.usage_epoch, t.subscription_id, t.default_epoch),
		@limit_name, t.limit_value, t.percent, t.used, t.period_start, t.period_end
	from unnest(@workspace::text[], @subscription::text[], @default_epoch::text[], @limit::bigint[], @percent::int[],
			@used::bigint[], @period_start::timestamptz[], @period_end::timestamptz[])
		as t (workspace_id, subscription_id, default_epoch, limit_value, percent, used, period_start, period_end)
	left join subscriptions s on s.id = t.subscription_id::uuid
	order by t.workspace_id, 2, t.limit_value, t.percent
	on conflict do nothing
	returning workspace_id, percent, used, limit_value, period_start, period_end`

func sightingArgs(all []sighting) pgx.NamedArgs {
	return pgx.NamedArgs{
		"limit_name":    schemas.LimitExecutions,
		"workspace":     column(all, func(s sighting) string { return s.workspace }),
		"subscription":  column(all, func(s sighting) *string { return textOrNull(s.subscription) }),
		"default_epoch": column(all, func(s sighting) string { return s.defaultEpoch }),
		"limit":         column(all, func(s sighting) int64 { return s.limit }),
		"percent":       column(all, func(s sighting) int { return s.percent }),
		"used":          column(all, func(s sighting) int64 { return s.used }),
		"period_start":  column(all, func(s sighting) time.Time { return s.start }),
		"period_end":    column(all, func(s sighting) time.Time { return s.end }),
	}
}

func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// noteStandings compares what was folded with the terms that the workspace is on now.
// Decisions show the terms that they were taken on: after a downgrade there may be
// none, or only ones that were taken before it and are folded after it was heard
// of. So both who changes the usage and who hears of new terms looks here, and
// whichever comes second sees both. A limit of 0 is over once anything is used.
//
// The lookups are lateral so that each takes its primary key, whatever the planner
// believes of tables that were not analyzed yet.
const noteStandings = `
	insert into usage_thresholds (workspace_id, usage_epoch, limit_name, limit_value, percent, used, period_start, period_end)
	select t.id, s.usage_epoch, @limit_name, s.value, at.percent, p.used, s.period_start, s.period_end
	from unnest(@workspaces::text[]) as t (id)
	cross join lateral (
		select active_subscription_id from workspaces where id = t.id limit 1) as w
	cross join lateral (
		select usage_epoch, period_start, period_end,
			(snapshot #>> array['limits', @limit_name, 'value'])::bigint as value
		from subscriptions where id = w.active_subscription_id and closed_at is null
			and now() >= period_start and now() < period_end limit 1) as s
	cross join lateral (
		select used from period_usage where workspace_id = t.id and usage_epoch = s.usage_epoch limit 1) as p
	cross join unnest(@percents::int[]) as at (percent)
	where case when s.value > 0 then p.used::numeric * 100 >= s.value::numeric * at.percent
		else s.value = 0 and p.used > 0 and at.percent = 100 end
	order by t.id, at.percent
	on conflict do nothing
	returning workspace_id, percent, used, limit_value, period_start, period_end`

// tell puts the thresholds into the outbox, in the transaction that noted them: of one
// workspace the lower before the higher.
func tell(ctx context.Context, tx pgx.Tx, all []reached) error {
	slices.SortStableFunc(all, func(a, b reached) int {
		return cmp.Or(strings.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Percent, b.Percent))
	})
	news := make([]subscriptions.News, len(all))
	for i, r := range all {
		body, err := json.Marshal(schemas.UsageThresholdReached{
			WorkspaceID: r.Workspace, Limit: schemas.LimitExecutions, Percent: r.Percent,
			Used: r.Used, LimitValue: r.LimitValue, Period: schemas.EventsPeriod{Start: r.Start.UTC(), End: r.End.UTC()},
		})
		if err != nil {
			return fmt.Errorf("encode threshold of workspace %s: %w", r.Workspace, err)
		}
		news[i] = subscriptions.News{WorkspaceID: r.Workspace, Kind: subscriptions.NewsThreshold, Body: body}
	}
	return subscriptions.Enqueue(ctx, tx, news...)
}
