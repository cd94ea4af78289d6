package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

const plans = "HEADROOM_PLANS@1"

// catalog is the subscriptions of the ledger's database, with a plan "n<limit>" for each limit.
func (b *book) catalog(t testing.TB, limits ...int64) *subscriptions.Store {
	t.Helper()
	const terms = `max_concurrent_executions: unlimited
      max_tasks_per_execution: unlimited
      max_execution_duration_minutes: unlimited
      max_execution_payload_size_mb: unlimited
      max_storage_mb: unlimited
      max_executions_per_minute: unlimited
`
	text := &strings.Builder{}
	fmt.Fprintf(text, "plans:\n  free:\n    default: true\n    rank: 0\n    limits:\n      max_executions: unlimited\n      %s", terms)
	for i, n := range limits {
		fmt.Fprintf(text, "  n%d:\n    rank: %d\n    limits:\n      max_executions: %d\n      %s", n, i+1, n, terms)
	}
	catalog, err := subscriptions.ParseCatalog("catalog.yaml", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	store := subscriptions.NewStore(b.pool, subscriptions.StoreOptions{})
	if _, err := store.ApplyCatalog(t.Context(), catalog); err != nil {
		t.Fatal(err)
	}
	return store
}

// assign puts a workspace on the plan of that limit and returns its period.
func assign(t testing.TB, store *subscriptions.Store, workspace string, limit int64) subscriptions.Subscription {
	t.Helper()
	row, err := store.Assign(t.Context(), subscriptions.Assignment{WorkspaceID: workspace, PlanKey: fmt.Sprintf("n%d", limit)})
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// under is an allow by a limit of the default plan.
func under(limit int64, execution string, used int64) ledger.Decision {
	d := allow("w", execution, used)
	d.Limits.MaxExecutions = schemas.LimitOf(limit)
	return d
}

// paid is an allow in the period of a subscription.
func paid(row subscriptions.Subscription, execution string, used int64) ledger.Decision {
	d := allow(row.WorkspaceID, execution, used)
	d.SubscriptionID, d.Limits = &row.ID, row.Snapshot.Limits
	d.PeriodStart, d.PeriodEnd = row.PeriodStart, row.PeriodEnd
	return d
}

// exhausted is a denial for a quota that is used up.
func exhausted(limit int64, execution string) ledger.Decision {
	d := deny("w", execution, 9001, noon)
	d.Limit, d.Exhausted, d.Used = schemas.LimitExecutions, []string{schemas.LimitExecutions}, limit
	d.Limits.MaxExecutions = schemas.LimitOf(limit)
	return d
}

// hear folds that the terms of a workspace changed.
func (b *book) hear(t testing.TB, workspace string) {
	t.Helper()
	if _, err := b.Position(t.Context(), plans); err != nil {
		t.Fatal(err)
	}
	b.at[plans]++
	err := b.Fold(t.Context(), ledger.Batch{
		Invalidated: []string{workspace}, Spans: []ledger.Span{{Source: plans, After: b.at[plans] - 1, Through: b.at[plans]}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// told is the thresholds in the outbox, in order: percent, used and limit.
func (b *book) told(t testing.TB) []string {
	t.Helper()
	rows, err := b.pool.Query(t.Context(), `select body->>'percent' || '%: ' || (body->>'used') || ' of ' || (body->>'limit_value')
		from outbox where subject_kind = 'usage.threshold_reached' order by position`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (b *book) expectTold(t testing.TB, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), b.told(t)); diff != "" {
		t.Errorf("thresholds (-want +got):\n%s", diff)
	}
}

func TestThresholdsAreToldOnceHoweverTheDecisionsAreBatched(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 3, 10, 25} {
		t.Run(fmt.Sprintf("batches of %d", size), func(t *testing.T) {
			t.Parallel()
			b := open(t)
			var ds []ledger.Decision
			for used := range int64(10) {
				ds = append(ds, under(10, fmt.Sprintf("x%d", used+1), used+1))
			}
			for i := range 15 {
				ds = append(ds, exhausted(10, fmt.Sprintf("late%d", i)))
			}
			for len(ds) > 0 {
				n := min(size, len(ds))
				b.decide(t, ds[:n]...)
				ds = ds[n:]
			}
			b.expectTold(t, "80%: 8 of 10", "100%: 10 of 10")
		})
	}
}

func TestWhatShowsAThreshold(t *testing.T) {
	t.Parallel()
	unbounded := under(1, "x", 1_000_000)
	unbounded.Limits.MaxExecutions = schemas.Unlimited
	crowded := exhausted(10, "x")
	crowded.Code, crowded.Limit, crowded.Used = 9002, schemas.LimitConcurrentExecutions, 500
	crowded.Exhausted = []string{schemas.LimitConcurrentExecutions}
	heavy := exhausted(10, "x")
	heavy.Code, heavy.Limit, heavy.Used = 9006, schemas.LimitPayloadMB, 7
	heavy.Exhausted = []string{schemas.LimitPayloadMB, schemas.LimitExecutions}
	shadow := exhausted(10, "x")
	shadow.Allowed, shadow.Shadow = true, true
	unplanned := exhausted(0, "x")
	unplanned.PeriodStart, unplanned.PeriodEnd = time.Time{}, time.Time{}
	stopped := stopRunning("w", "x", noon)
	stopped.Used = 1_000
	for name, test := range map[string]struct {
		decision ledger.Decision
		want     []string
	}{
		"just below":                        {under(1000, "x", 799), nil},
		"just there":                        {under(1000, "x", 800), []string{"80%: 800 of 1000"}},
		"just below the whole":              {under(1000, "x", 999), []string{"80%: 999 of 1000"}},
		"both at once":                      {under(1, "x", 1), []string{"80%: 1 of 1", "100%: 1 of 1"}},
		"far above after a downgrade":       {exhausted(10, "x"), []string{"80%: 10 of 10", "100%: 10 of 10"}},
		"no limit":                          {unbounded, nil},
		"a limit that no product fits":      {under(1<<62, "x", 1<<62-1), []string{fmt.Sprintf("80%%: %d of %d", int64(1<<62-1), int64(1<<62))}},
		"a limit of nothing, when asked":    {exhausted(0, "x"), []string{"100%: 0 of 0"}},
		"a denial for another limit":        {crowded, nil},
		"a denial for this one too":         {heavy, []string{"80%: 10 of 10", "100%: 10 of 10"}},
		"what shadow would have denied":     {shadow, []string{"80%: 10 of 10", "100%: 10 of 10"}},
		"a denial without a plan":           {unplanned, nil},
		"the end of a running execution":    {stopped, nil},
		"an allow that was charged nothing": {under(0, "x", 0), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.decide(t, test.decision)
			b.expectTold(t, test.want...)
		})
	}
}

func TestARefundAndAnotherUseAreNoNews(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.decide(t, under(5, "a", 4), under(5, "b", 5))
	b.complete(t, done("w", "b", schemas.OutcomeNotStarted))
	b.decide(t, under(5, "c", 5))
	b.expectTold(t, "80%: 4 of 5", "100%: 5 of 5")
}

func TestAnotherLimitAndAnotherPeriodAreNews(t *testing.T) {
	t.Parallel()
	b := open(t)
	next := under(5, "next", 5)
	next.DefaultEpoch = "default.2026-12"
	b.decide(t, under(5, "a", 5))
	b.decide(t, under(6, "b", 6), next)
	b.expectTold(t, "80%: 5 of 5", "100%: 5 of 5", "80%: 6 of 6", "80%: 5 of 5", "100%: 6 of 6", "100%: 5 of 5")
}

func TestPeriodsThatShareTheirUsageShareTheirThresholds(t *testing.T) {
	t.Parallel()
	b := open(t)
	store := b.catalog(t, 10)
	start := time.Now().UTC().Add(-time.Hour).Truncate(time.Second)
	state := subscriptions.SourceState{
		WorkspaceID: "w", Key: subscriptions.SubscriptionKey{Source: subscriptions.SourceStripe, Livemode: true, SourceID: "sub_1"},
		Status: subscriptions.StatusActive, PaymentState: subscriptions.PaymentPaid, PlanKey: "n10", Quantity: 1,
		Period: subscriptions.Period{Start: start, End: start.AddDate(0, 1, 0)},
	}
	var rows []subscriptions.Subscription
	for i := range 2 {
		state.Period.Start = start.Add(time.Duration(i) * time.Minute)
		row, err := store.Follow(t.Context(), state, "test")
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if rows[0].UsageEpoch != rows[1].UsageEpoch || rows[0].ID == rows[1].ID {
		t.Fatalf("%+v, want two periods with one epoch", rows)
	}
	b.decide(t, paid(rows[0], "a", 8), paid(rows[1], "b", 9))
	b.decide(t, paid(rows[1], "c", 10))
	b.expectTold(t, "80%: 8 of 10", "100%: 10 of 10")
}

func TestADowngradeBelowWhatIsUsedIsToldWithoutTraffic(t *testing.T) {
	t.Parallel()
	b := open(t)
	store := b.catalog(t, 5, 0, 10, 100)
	row := assign(t, store, "w", 100)
	var ds []ledger.Decision
	for used := range int64(8) {
		ds = append(ds, paid(row, fmt.Sprintf("x%d", used+1), used+1))
	}
	b.decide(t, ds...)
	b.hear(t, "w")
	b.expectTold(t)
	assign(t, store, "w", 10)
	b.hear(t, "w")
	b.hear(t, "w")
	assign(t, store, "w", 5)
	b.hear(t, "w")
	assign(t, store, "w", 10)
	b.hear(t, "w")
	assign(t, store, "w", 0)
	b.hear(t, "w")
	b.expectTold(t, "80%: 8 of 10", "80%: 8 of 5", "100%: 8 of 5", "100%: 8 of 0")
}

func TestADowngradeThatWasHeardOfBeforeTheUsageIsToldWithTheUsage(t *testing.T) {
	t.Parallel()
	b := open(t)
	store := b.catalog(t, 5, 100)
	row := assign(t, store, "w", 100)
	before := []ledger.Decision{paid(row, "x1", 1), paid(row, "x2", 2), paid(row, "x3", 3), paid(row, "x4", 4)}
	assign(t, store, "w", 5)
	b.hear(t, "w")
	b.expectTold(t)
	b.decide(t, before...)
	b.expectTold(t, "80%: 4 of 5")
}

func TestAnInvalidationOfAWorkspaceWithoutUsageIsNoNews(t *testing.T) {
	t.Parallel()
	b := open(t)
	store := b.catalog(t, 0)
	assign(t, store, "fresh", 0)
	b.hear(t, "fresh")
	b.hear(t, "stranger")
	b.expectTold(t)
}

func TestAFoldThatFailsTellsNothing(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.decide(t, under(1000, "a", 1))
	batch := b.next([]ledger.Decision{under(1000, "b", 900)}, nil)
	batch.Decisions[0].PlanRevision = -1
	batch.Decisions = append(batch.Decisions, deny("w", "bad", 9001, noon))
	batch.Decisions[1].Kind = "neither"
	if err := b.Fold(t.Context(), batch); !ledger.IsRefused(err) {
		t.Fatalf("error %v, want a refusal", err)
	}
	b.expectTold(t)
}
