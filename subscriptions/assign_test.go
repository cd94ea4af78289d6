package subscriptions_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/headroomhq/headroom/subscriptions"
)

// noon is when these tests assign.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 250_000_000, time.UTC)

func assign(t testing.TB, s *subscriptions.Store, a subscriptions.Assignment) subscriptions.Subscription {
	t.Helper()
	if a.WorkspaceID == "" {
		a.WorkspaceID = "acme"
	}
	if a.PlanKey == "" {
		a.PlanKey = "pro"
	}
	row, err := s.Assign(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func workspace(t testing.TB, s *subscriptions.Store, id string) subscriptions.Workspace {
	t.Helper()
	w, err := s.Workspace(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func history(t testing.TB, s *subscriptions.Store, id string) []subscriptions.SubscriptionHistory {
	t.Helper()
	rows, err := s.Subscriptions(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

var compareRows = cmp.Options{
	compareLimits,
	cmp.Comparer(func(a, b subscriptions.Interval) bool { return a == b }),
	cmpopts.IgnoreFields(subscriptions.Subscription{}, "CreatedAt"),
}

func wantPeriod(t *testing.T, row subscriptions.Subscription, start, end string) {
	t.Helper()
	want := subscriptions.Period{Start: instant(t, start), End: instant(t, end)}
	if diff := cmp.Diff(want, row.Period()); diff != "" {
		t.Errorf("period of the row (-want +got):\n%s", diff)
	}
}

func TestAssignOpensAPeriod(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	apply(t, s)
	row := assign(t, s, subscriptions.Assignment{Now: noon})

	if id, err := uuid.Parse(row.ID); err != nil || id.Version() != 7 {
		t.Errorf("id %q is no UUIDv7", row.ID)
	}
	plan := parse(t, twoPlans).Plans[1]
	want := subscriptions.Subscription{
		ID: row.ID, UsageEpoch: row.ID, WorkspaceID: "acme",
		Source: subscriptions.SourceEnterprise, SourceID: "acme", Livemode: true,
		PlanKey: "pro", PlanRevision: 1,
		Snapshot: subscriptions.Snapshot{PlanKey: "pro", PlanRevision: 1, Limits: plan.Limits, Features: plan.Features},
		Quantity: 1, Status: "active", PaymentState: "none", Kind: "created",
		PeriodStart: instant(t, "2026-11-20T12:00:00Z"), PeriodEnd: instant(t, "2026-12-20T12:00:00Z"),
		Interval: subscriptions.Monthly, Anchor: instant(t, "2026-11-20T12:00:00Z"),
	}
	want.Billing, want.DueAt = want.Period(), &want.PeriodEnd
	if diff := cmp.Diff(want, row, compareRows); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	w := workspace(t, s, "acme")
	if w.Revision != 1 || w.Subscription == nil {
		t.Fatalf("workspace is %+v", w)
	}
	if diff := cmp.Diff(row, *w.Subscription, compareRows); diff != "" {
		t.Errorf("active row (-returned +stored):\n%s", diff)
	}
}

func TestAssignFindsTheRunningPeriodOfAPastStart(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	for i, c := range []struct{ interval, start, from, to string }{
		{"", "2026-01-31", "2026-10-31", "2026-11-30"},
		{"year", "2024-02-29", "2026-02-28", "2027-02-28"},
		{"10d", "2026-11-01", "2026-11-11", "2026-11-21"},
		{"1h", "2026-11-20T10:30:00Z", "2026-11-20T11:30:00Z", "2026-11-20T12:30:00Z"},
		{"month", "2026-11-20T12:00:00.25Z", "2026-11-20T12:00:00.25Z", "2026-12-20T12:00:00.25Z"},
	} {
		start := instant(t, c.start)
		id := "ws" + string(rune('a'+i))
		row := assign(t, s, subscriptions.Assignment{WorkspaceID: id, Interval: c.interval, Start: &start, Now: noon})
		wantPeriod(t, row, c.from, c.to)
		if !row.Anchor.Equal(start) {
			t.Errorf("anchor is %s, want %s", row.Anchor, start)
		}
	}
	if n := count(t, pool, `SELECT count(*) FROM subscriptions`); n != 5 {
		t.Errorf("%d rows for five workspaces: periods were invented", n)
	}
}

func TestAssignAmendsARunningPeriod(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	apply(t, s)
	first := assign(t, s, subscriptions.Assignment{PlanKey: "free", Now: noon})
	start := instant(t, "2026-11-01")
	amended := assign(t, s, subscriptions.Assignment{
		Interval: "year", Start: &start, Now: noon.Add(time.Hour), Cause: "ticket 7",
	})

	want := first
	want.PlanKey, want.Snapshot = "pro", amended.Snapshot
	want.Interval, want.Anchor, want.PeriodEnd = subscriptions.Yearly, start, instant(t, "2027-11-01")
	want.Billing.End, want.DueAt = want.PeriodEnd, &want.PeriodEnd
	if diff := cmp.Diff(want, amended, compareRows); diff != "" {
		t.Errorf("amended row (-want +got):\n%s", diff)
	}
	rows := history(t, s, "acme")
	if diff := cmp.Diff([]subscriptions.Subscription{amended}, []subscriptions.Subscription{rows[0].Subscription}, compareRows); diff != "" {
		t.Errorf("stored rows (-returned +stored):\n%s", diff)
	}
	var changes []string
	for _, c := range rows[0].Changes {
		changes = append(changes, c.Field+": "+c.From+" → "+c.To+" ("+c.Cause+")")
	}
	if diff := cmp.Diff([]string{
		"plan_key: free → pro (ticket 7)",
		"limits.max_executions: 100 → unlimited (ticket 7)",
		"limits.max_concurrent_executions: 2 → 20 (ticket 7)",
		"limits.max_tasks_per_execution: 50 → unlimited (ticket 7)",
		"limits.max_execution_duration_minutes: 10 → 60 (ticket 7)",
		"limits.max_execution_payload_size_mb: 5 → 50 (ticket 7)",
		"limits.max_storage_mb: 0 → 1000 (ticket 7)",
		"limits.max_executions_per_minute: unlimited → 600 (ticket 7)",
		"features.automations: 5 → 0 (ticket 7)",
		"features.record_groups: 3 → unlimited (ticket 7)",
		"period_end: 2026-12-20T12:00:00Z → 2027-11-01T00:00:00Z (ticket 7)",
		"interval: month → year (ticket 7)",
		"anchor: 2026-11-20T12:00:00Z → 2026-11-01T00:00:00Z (ticket 7)",
	}, changes); diff != "" {
		t.Errorf("audit trail (-want +got):\n%s", diff)
	}
	if w := workspace(t, s, "acme"); w.Revision != 2 || w.Subscription.ID != first.ID {
		t.Errorf("workspace is at revision %d on %s", w.Revision, w.Subscription.ID)
	}
}

func TestAssignAgainChangesNothingButTheRevision(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	apply(t, s)
	first := assign(t, s, subscriptions.Assignment{Interval: "10d", Now: noon})
	again := assign(t, s, subscriptions.Assignment{Now: noon.Add(time.Hour)})
	if diff := cmp.Diff(first, again, compareRows); diff != "" {
		t.Errorf("the same assignment again (-first +again):\n%s", diff)
	}
	if rows := history(t, s, "acme"); len(rows) != 1 || len(rows[0].Changes) != 0 {
		t.Errorf("history is %+v", rows)
	}
	if w := workspace(t, s, "acme"); w.Revision != 2 {
		t.Errorf("revision is %d, want 2", w.Revision)
	}
}

func TestAssignTakesTheNewestTerms(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	apply(t, s)
	assign(t, s, subscriptions.Assignment{Now: noon})
	apply(t, s, "max_concurrent_executions: 20", "max_concurrent_executions: 30")
	if got := workspace(t, s, "acme").Subscription.Snapshot.PlanRevision; got != 1 {
		t.Errorf("an apply changed a running period to revision %d", got)
	}
	row := assign(t, s, subscriptions.Assignment{Now: noon})
	if n, _ := row.Snapshot.Limits.MaxConcurrentExecutions.Value(); n != 30 || row.PlanRevision != 2 {
		t.Errorf("assigned again: concurrency %d of revision %d", n, row.PlanRevision)
	}
}

func TestAssignNewPeriodStartsAFreshQuota(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	apply(t, s)
	first := assign(t, s, subscriptions.Assignment{Interval: "10d", Now: noon})
	next := assign(t, s, subscriptions.Assignment{NewPeriod: true, Now: noon.Add(time.Hour)})

	if next.ID == first.ID || next.UsageEpoch != next.ID || next.Kind != "cycle" || *next.PreviousID != first.ID {
		t.Errorf("new period is %+v", next)
	}
	wantPeriod(t, next, "2026-11-20T13:00:00Z", "2026-11-30T13:00:00Z")
	rows := history(t, s, "acme")
	if len(rows) != 2 || rows[0].ID != next.ID || rows[0].ClosedAt != nil || !rows[1].ClosedAt.Equal(next.PeriodStart) {
		t.Errorf("history is %+v", rows)
	}
	if w := workspace(t, s, "acme"); w.Revision != 2 || w.Subscription.ID != next.ID {
		t.Errorf("workspace is at revision %d on %s", w.Revision, w.Subscription.ID)
	}

	// With a start the period still begins now, and ends where the start's do.
	start := instant(t, "2026-11-01")
	anchored := assign(t, s, subscriptions.Assignment{NewPeriod: true, Start: &start, Now: noon.Add(2 * time.Hour)})
	wantPeriod(t, anchored, "2026-11-20T14:00:00Z", "2026-11-21T00:00:00Z")

	// Twice in the same second must not collide.
	same := assign(t, s, subscriptions.Assignment{NewPeriod: true, Now: noon.Add(2 * time.Hour)})
	if !same.PeriodStart.After(anchored.PeriodStart) {
		t.Errorf("a period from %s follows one from %s", same.PeriodStart, anchored.PeriodStart)
	}
}

func TestAssignAfterThePeriodOpensTheCurrentOne(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	apply(t, s)
	first := assign(t, s, subscriptions.Assignment{PlanKey: "free", Interval: "10d", Now: noon})
	row := assign(t, s, subscriptions.Assignment{Now: noon.AddDate(0, 0, 25)})
	if row.ID == first.ID || row.PlanKey != "pro" || row.Kind != "cycle" || *row.PreviousID != first.ID {
		t.Errorf("row is %+v", row)
	}
	wantPeriod(t, row, "2026-12-10T12:00:00Z", "2026-12-20T12:00:00Z")
	if rows := history(t, s, "acme"); len(rows) != 2 || !rows[1].ClosedAt.Equal(row.PeriodStart) {
		t.Errorf("history is %+v", rows)
	}
}

func TestAssignFromAnotherSourceMovesThePointer(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	enterprise := assign(t, s, subscriptions.Assignment{Now: noon})
	system := assign(t, s, subscriptions.Assignment{PlanKey: "free", Source: subscriptions.SourceSystem, Now: noon})
	if w := workspace(t, s, "acme"); w.Subscription.ID != system.ID || w.Revision != 2 {
		t.Errorf("active is %s at revision %d", w.Subscription.ID, w.Revision)
	}
	back := assign(t, s, subscriptions.Assignment{Now: noon})
	if w := workspace(t, s, "acme"); back.ID != enterprise.ID || w.Subscription.ID != enterprise.ID || w.Revision != 3 {
		t.Errorf("active is %s at revision %d, want %s", w.Subscription.ID, w.Revision, enterprise.ID)
	}
	if n := count(t, pool, `SELECT count(*) FROM subscriptions WHERE closed_at IS NULL`); n != 2 {
		t.Errorf("%d open rows, want one of each source", n)
	}
}

func TestAssignReportsEveryFault(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	start := instant(t, "1969-12-31")
	_, err := s.Assign(t.Context(), subscriptions.Assignment{WorkspaceID: "a.b", Source: "stripe", Interval: "2w", Start: &start})
	if !errors.Is(err, subscriptions.ErrInvalidAssignment) {
		t.Fatalf("error is %v", err)
	}
	for _, want := range []string{
		`workspace "a.b": must be 1 to 128 letters`, "plan: is missing", `source "stripe": must be enterprise or system`,
		`interval "2w": must be month, year or`, "start 1969-12-31T00:00:00Z: must not be before 1970",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q:\n%v", want, err)
		}
	}
	ahead := noon.Add(time.Millisecond)
	_, err = s.Assign(t.Context(), subscriptions.Assignment{WorkspaceID: "acme", PlanKey: "pro", Start: &ahead, Now: noon})
	if !errors.Is(err, subscriptions.ErrInvalidAssignment) || !strings.Contains(err.Error(), "must not be later than now") {
		t.Errorf("a start ahead: %v", err)
	}
	_, err = s.Assign(t.Context(), subscriptions.Assignment{WorkspaceID: "acme", PlanKey: "gold"})
	if !errors.Is(err, subscriptions.ErrUnknownPlan) || !strings.Contains(err.Error(), "the catalog has free, pro") {
		t.Errorf("an unknown plan: %v", err)
	}
	if n := count(t, pool, `SELECT count(*) FROM workspaces`); n != 0 {
		t.Errorf("refused assignments left %d workspaces", n)
	}
}

func TestAssignInParallel(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	var operators sync.WaitGroup
	for i := range 8 {
		operators.Go(func() {
			_, err := s.Assign(t.Context(), subscriptions.Assignment{WorkspaceID: "acme", PlanKey: "pro", NewPeriod: i%2 == 1})
			if err != nil {
				t.Error(err)
			}
		})
	}
	operators.Wait()
	if w := workspace(t, s, "acme"); w.Revision != 8 {
		t.Errorf("revision is %d, want 8", w.Revision)
	}
	if n := count(t, pool, `SELECT count(*) FROM subscriptions WHERE closed_at IS NULL`); n != 1 {
		t.Errorf("%d open rows, want 1", n)
	}
	if n := count(t, pool, `SELECT count(*) FROM workspaces w JOIN subscriptions s ON s.id = w.active_subscription_id AND s.closed_at IS NULL`); n != 1 {
		t.Error("the workspace points to a closed row")
	}
}

func TestWorkspacesArePaged(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	apply(t, s)
	for _, id := range []string{"c", "a", "b"} {
		assign(t, s, subscriptions.Assignment{WorkspaceID: id, Now: noon})
	}
	var got []string
	page := subscriptions.Page{Limit: 2}
	for {
		list, err := s.Workspaces(t.Context(), page)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			break
		}
		for _, w := range list {
			got = append(got, w.ID+":"+w.Subscription.PlanKey)
		}
		page.After = list[len(list)-1].ID
	}
	if diff := cmp.Diff([]string{"a:pro", "b:pro", "c:pro"}, got); diff != "" {
		t.Errorf("workspaces (-want +got):\n%s", diff)
	}
	if _, err := s.Workspace(t.Context(), "nobody"); !errors.Is(err, subscriptions.ErrUnknownWorkspace) {
		t.Errorf("an unknown workspace: %v", err)
	}
	if rows := history(t, s, "nobody"); len(rows) != 0 {
		t.Errorf("an unknown workspace has rows: %v", rows)
	}
}
