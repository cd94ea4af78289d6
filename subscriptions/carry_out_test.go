package subscriptions_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// running is a subscription to a plan in a month that began a day ago.
func running(t testing.TB, pool *pgxpool.Pool, sourceID, plan string) subscriptions.SourceState {
	t.Helper()
	start := now(t, pool).AddDate(0, 0, -1).Truncate(time.Second)
	key := stripeKey
	key.SourceID = sourceID
	return subscriptions.SourceState{
		WorkspaceID: "acme", Key: key, Status: "active", PaymentState: "paid", PlanKey: plan, Quantity: 1,
		Period: subscriptions.Period{Start: start, End: start.AddDate(0, 1, 0)},
	}
}

// nextPeriod is a state in the month after its own.
func nextPeriod(s subscriptions.SourceState) subscriptions.SourceState {
	s.Period = subscriptions.Period{Start: s.Period.End, End: s.Period.End.AddDate(0, 1, 0)}
	return s
}

func follow(t testing.TB, s *subscriptions.Store, state subscriptions.SourceState) subscriptions.Subscription {
	t.Helper()
	row, err := s.Follow(t.Context(), state, "a test")
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// told is an event in the outbox.
type told struct {
	ID, Workspace, Kind string
	Body                []byte
}

func outbox(t testing.TB, pool *pgxpool.Pool) []told {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT id::text, workspace_id, subject_kind, body FROM outbox WHERE published_at IS NULL ORDER BY position`)
	if err != nil {
		t.Fatal(err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowToStructByPos[told])
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// wantTold compares the outbox with lines such as "invalidated 2" and "renewed cycle".
func wantTold(t testing.TB, pool *pgxpool.Pool, want ...string) {
	t.Helper()
	var got []string
	for _, e := range outbox(t, pool) {
		var data struct {
			Kind         string `json:"kind"`
			PlanRevision int64  `json:"plan_revision"`
		}
		if err := json.Unmarshal(e.Body, &data); err != nil {
			t.Fatal(err)
		}
		line := "renewed " + data.Kind
		if e.Kind == "plan.invalidated" {
			line = "invalidated " + string(rune('0'+data.PlanRevision))
		}
		got = append(got, line)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outbox (-want +got):\n%s", diff)
	}
}

func wantActive(t testing.TB, s *subscriptions.Store, id string, revision int64) {
	t.Helper()
	w := workspace(t, s, "acme")
	active := ""
	if w.Subscription != nil {
		active = w.Subscription.ID
	}
	if active != id || w.Revision != revision {
		t.Errorf("workspace is on %q at revision %d, want %q at %d", active, w.Revision, id, revision)
	}
}

func TestFollowASubscriptionThroughItsLife(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	state := running(t, pool, "sub_1", "pro")

	first := follow(t, s, state)
	wantActive(t, s, first.ID, 1)
	if again := follow(t, s, state); again.ID != first.ID {
		t.Errorf("the same state again opens %s", again.ID)
	}
	wantActive(t, s, first.ID, 1)

	cancel := state.Period.End
	state.PlanKey, state.Quantity, state.CancelAt = "free", 3, &cancel
	amended := follow(t, s, state)
	if amended.ID != first.ID || amended.UsageEpoch != first.UsageEpoch {
		t.Errorf("an amendment made %+v of %+v", amended, first)
	}
	wantActive(t, s, first.ID, 2)

	old := state
	state = nextPeriod(state)
	state.CancelAt = nil
	next := follow(t, s, state)
	wantActive(t, s, next.ID, 3)
	if stale := follow(t, s, old); stale.ID != next.ID {
		t.Errorf("a stale state is answered with %s", stale.ID)
	}

	ended := state.Period.Start.Add(time.Hour)
	state.Status, state.EndedAt = "canceled", &ended
	closed := follow(t, s, state)
	wantActive(t, s, "", 4)
	state.Status = "active"
	if again := follow(t, s, nextPeriod(state)); again.ID != closed.ID || !again.ClosedAt.Equal(ended) {
		t.Errorf("after the end: %+v", again)
	}
	wantTold(t, pool, "renewed created", "invalidated 1", "invalidated 2", "renewed cycle", "invalidated 3", "renewed ended", "invalidated 4")

	rows := history(t, s, "acme")
	if diff := cmp.Diff(closed, rows[0].Subscription, compareRows); diff != "" {
		t.Errorf("newest row (-returned +stored):\n%s", diff)
	}
	if !rows[1].ClosedAt.Equal(next.PeriodStart) || rows[1].Quantity != 3 || !rows[1].CancelAt.Equal(cancel) || rows[1].EndedAt != nil {
		t.Errorf("first row is %+v", rows[1])
	}
	if n := len(rows[0].Changes); n != 2 || rows[0].Changes[0].Cause != "a test" {
		t.Errorf("the end left the changes %+v", rows[0].Changes)
	}
}

func TestAnAssignmentAfterTheEndIsANewSubscription(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	old := assignOver(t, s, pool)
	execute(t, pool, `UPDATE subscriptions SET cancel_at = period_end`)
	planInfo(t, s, now(t, pool))
	row := assign(t, s, subscriptions.Assignment{})
	if row.ID == old.ID || row.PreviousID != nil || row.Kind != "created" || row.Status != "active" {
		t.Errorf("row is %+v", row)
	}
	wantActive(t, s, row.ID, 3)
}

func TestTheOutboxHoldsWhatTheContractSays(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	first := follow(t, s, running(t, pool, "sub_1", "pro"))
	next := follow(t, s, nextPeriod(running(t, pool, "sub_1", "pro")))
	events := outbox(t, pool)
	if len(events) != 4 {
		t.Fatalf("%d events, want 4", len(events))
	}
	for _, e := range events {
		if id, err := uuid.Parse(e.ID); err != nil || id.Version() != 7 || e.Workspace != "acme" {
			t.Errorf("event %s of workspace %s is not named as it should be", e.ID, e.Workspace)
		}
	}
	var got schemas.SubscriptionRenewed
	if err := json.Unmarshal(events[2].Body, &got); err != nil {
		t.Fatal(err)
	}
	want := schemas.SubscriptionRenewed{
		WorkspaceID: "acme", SubscriptionID: next.ID, PreviousSubscriptionID: &first.ID, Kind: "cycle",
		PlanKey: "pro", PlanRevision: 1, PeriodStart: next.PeriodStart, PeriodEnd: next.PeriodEnd,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("renewed (-want +got):\n%s", diff)
	}
	if _, err := schemas.Encode(schemas.NewEvent("test", events[2].ID, noon, got)); err != nil {
		t.Errorf("renewed is no valid event: %v", err)
	}
	ended := running(t, pool, "sub_1", "pro")
	ended.Status = "canceled"
	closed := follow(t, s, ended)
	want.Kind, want.PeriodEnd = "ended", next.PeriodEnd // it ended before the last period began
	var end schemas.SubscriptionRenewed
	if err := json.Unmarshal(outbox(t, pool)[4].Body, &end); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, end); diff != "" || closed.ID != next.ID {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
	if _, err := schemas.Encode(schemas.NewEvent("test", events[2].ID, noon, end)); err != nil {
		t.Errorf("ended is no valid event: %v", err)
	}
	var invalidated schemas.PlanInvalidated
	if err := json.Unmarshal(events[3].Body, &invalidated); err != nil {
		t.Fatal(err)
	}
	if _, err := schemas.Encode(schemas.NewEvent("test", events[3].ID, noon, invalidated)); err != nil || invalidated.PlanRevision != 2 {
		t.Errorf("invalidated is %+v: %v", invalidated, err)
	}
}

func TestFollowSeveralSubscriptionsOfAWorkspace(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	free, pro := running(t, pool, "sub_free", "free"), running(t, pool, "sub_pro", "pro")
	best := follow(t, s, pro)
	follow(t, s, free)
	wantActive(t, s, best.ID, 1)
	free.Quantity = 2
	follow(t, s, free)
	wantActive(t, s, best.ID, 1)
	wantTold(t, pool, "renewed created", "invalidated 1")
	follow(t, s, nextPeriod(free))
	wantTold(t, pool, "renewed created", "invalidated 1")

	pro.Status = "canceled"
	follow(t, s, pro)
	free = nextPeriod(free)
	other := follow(t, s, free)
	wantActive(t, s, other.ID, 2)
	wantTold(t, pool, "renewed created", "invalidated 1", "renewed ended", "renewed cycle", "invalidated 2")
	free.Status = "canceled"
	follow(t, s, free)
	wantTold(t, pool, "renewed created", "invalidated 1", "renewed ended", "renewed cycle", "invalidated 2", "renewed ended", "invalidated 3")
}

func TestAnAssignmentIsPinnedWhereItsRankWouldLose(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	free := subscriptions.Assignment{PlanKey: "free", Source: subscriptions.SourceSystem}
	assigned := assign(t, s, free)
	wantActive(t, s, assigned.ID, 1)
	// It won by itself and is not pinned: a better one takes over.
	pro := follow(t, s, running(t, pool, "sub_1", "pro"))
	wantActive(t, s, pro.ID, 2)
	// Assigned against a better one it is pinned, and stays through more of them.
	assign(t, s, free)
	wantActive(t, s, assigned.ID, 3)
	follow(t, s, running(t, pool, "sub_2", "pro"))
	wantActive(t, s, assigned.ID, 3)
	if n := count(t, pool, `SELECT count(*) FROM workspaces WHERE pinned_source = 'system' AND pinned_source_id = 'acme' AND pinned_livemode`); n != 1 {
		t.Error("the assigned subscription is not pinned")
	}
	// The last assignment wins, by itself, and takes the pin away.
	enterprise := assign(t, s, subscriptions.Assignment{PlanKey: "pro"})
	wantActive(t, s, enterprise.ID, 4)
	if n := count(t, pool, `SELECT count(*) FROM workspaces WHERE pinned_source IS NULL`); n != 1 {
		t.Error("a subscription is still pinned")
	}
}

func TestFollowHoldsAnUnpaidPeriod(t *testing.T) {
	t.Parallel()
	_, pool := newStore(t)
	s := subscriptions.NewStore(pool, subscriptions.StoreOptions{Policy: subscriptions.Policy{HoldUnpaid: true}})
	apply(t, s)
	state := running(t, pool, "sub_1", "pro")
	first := follow(t, s, state)
	state = nextPeriod(state)
	state.PaymentState = "pending"
	next := follow(t, s, state)
	wantActive(t, s, first.ID, 1)
	state.PaymentState = "paid"
	follow(t, s, state)
	wantActive(t, s, next.ID, 2)
	wantTold(t, pool, "renewed created", "invalidated 1", "renewed cycle", "invalidated 2")
}

func TestFollowRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	good := running(t, pool, "sub_1", "pro")
	follow(t, s, good)
	for want, change := range map[string]func(*subscriptions.SourceState){
		"which is not after its start": func(s *subscriptions.SourceState) { s.Period.End = s.Period.Start },
		"source id: is missing":        func(s *subscriptions.SourceState) { s.Key.SourceID = "" },
		`payment state "maybe"`:        func(s *subscriptions.SourceState) { s.PaymentState = "maybe" },
		`kind "renewal"`:               func(s *subscriptions.SourceState) { s.Kind = "renewal" },
		`kind "ended"`:                 func(s *subscriptions.SourceState) { s.Kind = "ended" },
		`after trial "convrt"`:         func(s *subscriptions.SourceState) { s.AfterTrial = "convrt" },
		`workspace "a.b"`:              func(s *subscriptions.SourceState) { s.WorkspaceID = "a.b" },
		"belongs to workspace acme":    func(s *subscriptions.SourceState) { s.WorkspaceID = "other" },
	} {
		state := good
		change(&state)
		if _, err := s.Follow(t.Context(), state, "a test"); !errors.Is(err, subscriptions.ErrInvalidState) || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
	good.PlanKey = "gold"
	if _, err := s.Follow(t.Context(), good, "a test"); !errors.Is(err, subscriptions.ErrUnknownPlan) {
		t.Errorf("an unknown plan: %v", err)
	}
	if n := count(t, pool, `SELECT count(*) FROM workspaces`); n != 1 {
		t.Errorf("refused states left %d workspaces", n)
	}
}

func TestFollowInParallel(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	state := running(t, pool, "sub_1", "pro")
	var sources sync.WaitGroup
	for range 8 {
		sources.Go(func() {
			for _, said := range []subscriptions.SourceState{state, nextPeriod(state), state} {
				if _, err := s.Follow(t.Context(), said, "a test"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	sources.Wait()
	wantTold(t, pool, "renewed created", "invalidated 1", "renewed cycle", "invalidated 2")
	if rows := history(t, s, "acme"); len(rows) != 2 {
		t.Errorf("%d rows, want 2", len(rows))
	}
}

func TestARenewalIsToldOnce(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	old := assignOver(t, s, pool)
	planInfo(t, s, now(t, pool))
	planInfo(t, s, now(t, pool))
	wantTold(t, pool, "renewed created", "invalidated 1", "renewed cycle", "invalidated 2")
	if row := workspace(t, s, "acme").Subscription; row.GapFrom != nil || *row.PreviousID != old.ID {
		t.Errorf("row is %+v", row)
	}
}

func TestARenewalNotesTheGap(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	start := now(t, pool).Add(-10 * time.Hour)
	old := assign(t, s, subscriptions.Assignment{Interval: "1h", Start: &start, Now: start.Add(time.Minute)})
	planInfo(t, s, now(t, pool))
	if row := workspace(t, s, "acme").Subscription; row.GapFrom == nil || !row.GapFrom.Equal(old.PeriodEnd) {
		t.Errorf("the gap is from %v, want %s", row.GapFrom, old.PeriodEnd)
	}
	wantTold(t, pool, "renewed created", "invalidated 1", "renewed cycle", "invalidated 2")
}

func TestASubscriptionThatIsSetToEndDoesNotRenew(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	old := assignOver(t, s, pool)
	execute(t, pool, `UPDATE subscriptions SET cancel_at = period_end`)
	if got := planInfo(t, s, now(t, pool)); got.Snapshot.PlanKey != "free" || got.Revision != 2 {
		t.Errorf("plan info is %+v", got)
	}
	row := history(t, s, "acme")[0]
	if row.ID != old.ID || row.Status != "canceled" || !row.EndedAt.Equal(old.PeriodEnd) || !row.ClosedAt.Equal(old.PeriodEnd) {
		t.Errorf("row is %+v", row.Subscription)
	}
	wantTold(t, pool, "renewed created", "invalidated 1", "renewed ended", "invalidated 2")
}
