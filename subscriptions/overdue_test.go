package subscriptions_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// overAnHourAgo is Stripe's subscription whose period ended an hour ago, as it was
// stored while it ran.
func overAnHourAgo(t *testing.T, s *subscriptions.Store, pool *pgxpool.Pool) (subscriptions.SourceState, subscriptions.Subscription) {
	t.Helper()
	state := running(t, pool, "sub_1", "pro")
	row := follow(t, s, state)
	by := row.PeriodEnd.Sub(now(t, pool)).Truncate(time.Second) + time.Hour
	elapse(t, pool, by)
	state.Period = subscriptions.Period{Start: state.Period.Start.Add(-by), End: state.Period.End.Add(-by)}
	return state, *workspace(t, s, "acme").Subscription
}

func overdue(t *testing.T, s *subscriptions.Store) []subscriptions.Subscription {
	t.Helper()
	list, err := s.Overdue(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestAPeriodWithoutNewsGoesOnUntilItsGraceIsOver(t *testing.T) {
	t.Parallel()
	caughtUp(t, func(t *testing.T, catchUp func(*subscriptions.Store, *pgxpool.Pool)) {
		s, pool := newStore(t)
		apply(t, s)
		state, row := overAnHourAgo(t, s, pool)
		catchUp(s, pool)
		got, end := planInfo(t, s, now(t, pool)), row.PeriodEnd.Add(subscriptions.DefaultOverdueGrace)
		if got.SubscriptionID != row.ID || got.UsageEpoch != row.UsageEpoch || got.Revision != 1 ||
			got.Period != (subscriptions.Period{Start: row.PeriodStart, End: end}) || !got.ValidUntil.Equal(end) {
			t.Errorf("within the grace: %+v", got)
		}
		elapse(t, pool, subscriptions.DefaultOverdueGrace)
		catchUp(s, pool)
		if got := planInfo(t, s, now(t, pool)); got.SubscriptionID != "" || got.Snapshot.PlanKey != "free" || got.Revision != 2 {
			t.Errorf("after the grace: %+v", got)
		}
		wantTold(t, pool, "renewed created", "invalidated 1", "invalidated 2")

		// The news come after all.
		state.Period = subscriptions.Period{Start: row.PeriodEnd.Add(-subscriptions.DefaultOverdueGrace), End: now(t, pool).AddDate(0, 0, 20)}
		next := follow(t, s, state)
		if next.OverdueSince != nil || next.UsageEpoch != next.ID || *next.PreviousID != row.ID || len(overdue(t, s)) != 0 {
			t.Errorf("the next period is %+v", next)
		}
		wantActive(t, s, next.ID, 3)
	})
}

func TestTheWorkerMarksAPeriodWithoutNewsOnce(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	state, row := overAnHourAgo(t, s, pool)
	if list := overdue(t, s); len(list) != 0 {
		t.Errorf("overdue before anybody looked: %+v", list)
	}
	lifecycle(t, subscriptions.Policy{}, schematest.Logger(t))
	nothingDue(t, pool)
	list := overdue(t, s)
	if len(list) != 1 || list[0].ID != row.ID || !list[0].OverdueSince.Equal(row.PeriodEnd) {
		t.Fatalf("overdue: %+v", list)
	}
	if edge := row.PeriodEnd.Add(subscriptions.DefaultOverdueGrace); list[0].DueAt == nil || !list[0].DueAt.Equal(edge) {
		t.Errorf("due again %v, want %s", list[0].DueAt, edge)
	}
	changes := history(t, s, "acme")[0].Changes
	if len(changes) != 1 || changes[0].Field != "overdue_since" || changes[0].Cause != "time" {
		t.Errorf("changes: %+v", changes)
	}
	wantTold(t, pool, "renewed created", "invalidated 1")

	// A longer period is news, the same one is none.
	follow(t, s, state)
	if list := overdue(t, s); len(list) != 1 {
		t.Errorf("the same state took the mark: %+v", list)
	}
	state.Period.End = state.Period.End.AddDate(0, 1, 0)
	if amended := follow(t, s, state); amended.ID != row.ID || amended.OverdueSince != nil || len(overdue(t, s)) != 0 {
		t.Errorf("amended to %+v", amended)
	}
}

func TestAnUnpaidPeriodIsHeldWhileTheOldOneGoesOn(t *testing.T) {
	t.Parallel()
	_, pool := newStore(t)
	s := subscriptions.NewStore(pool, subscriptions.StoreOptions{Policy: subscriptions.Policy{HoldUnpaid: true}})
	apply(t, s)
	state, row := overAnHourAgo(t, s, pool)
	state = nextPeriod(state)
	state.PlanKey, state.PaymentState = "free", "pending"
	held := follow(t, s, state)
	if !held.Held || held.UsageEpoch != held.ID {
		t.Fatalf("the unpaid period is %+v", held)
	}
	wantHeld := func(when string, revision int64) {
		t.Helper()
		want := subscriptions.Period{Start: row.PeriodStart, End: held.PeriodEnd}
		got := planInfo(t, s, now(t, pool))
		if got.SubscriptionID != row.ID || got.UsageEpoch != row.UsageEpoch || got.Snapshot.PlanKey != "pro" || got.Period != want || got.Revision != revision {
			t.Errorf("%s: %+v", when, got)
		}
	}
	wantHeld("not paid yet", 1)
	state.Status, state.PaymentState = "past_due", "failed"
	follow(t, s, state)
	wantHeld("the payment failed", 2)
	if got, grace := planInfo(t, s, now(t, pool)), held.PeriodStart.Add(subscriptions.DefaultPastDueGrace); !got.ValidUntil.Equal(grace) {
		t.Errorf("held until %s, want the end of the grace, %s", got.ValidUntil, grace)
	}
	state.Status, state.PaymentState = "active", "paid"
	follow(t, s, state)
	got := planInfo(t, s, now(t, pool))
	if got.SubscriptionID != held.ID || got.UsageEpoch != held.ID || got.Snapshot.PlanKey != "free" || got.Period != held.Period() {
		t.Errorf("paid: %+v", got)
	}
	// What was paid once is not held again for a later invoice.
	state.PaymentState = "pending"
	follow(t, s, state)
	if again := planInfo(t, s, now(t, pool)); again.SubscriptionID != held.ID {
		t.Errorf("a later invoice: %+v", again)
	}
}

func TestAHoldEnds(t *testing.T) {
	t.Parallel()
	_, pool := newStore(t)
	s := subscriptions.NewStore(pool, subscriptions.StoreOptions{Policy: subscriptions.Policy{HoldUnpaid: true}})
	apply(t, s)
	start := now(t, pool).Add(-time.Hour).Truncate(time.Second)
	for ws, c := range map[string]struct {
		says   func(*subscriptions.SourceState)
		passes time.Duration
	}{
		"unpaid-for-good":     {func(s *subscriptions.SourceState) { s.Status = "unpaid" }, 0},
		"canceled":            {func(s *subscriptions.SourceState) { s.Status = "canceled" }, 0},
		"its-grace-is-over":   {func(s *subscriptions.SourceState) { s.Status = "past_due" }, subscriptions.DefaultPastDueGrace},
		"over-without-a-word": {func(*subscriptions.SourceState) {}, 31 * 24 * time.Hour},
	} {
		info := func() subscriptions.PlanInfo {
			info, err := s.PlanInfo(t.Context(), ws, now(t, pool))
			if err != nil {
				t.Fatal(err)
			}
			return info
		}
		state := running(t, pool, ws, "pro")
		state.WorkspaceID, state.Period = ws, subscriptions.Period{Start: start.AddDate(0, -1, 0), End: start}
		row := follow(t, s, state)
		state = nextPeriod(state)
		state.PaymentState = "pending"
		follow(t, s, state)
		if got := info(); got.SubscriptionID != row.ID {
			t.Fatalf("%s, held: %+v", ws, got)
		}
		c.says(&state)
		follow(t, s, state)
		elapse(t, pool, c.passes)
		if got := info(); got.SubscriptionID != "" || got.Snapshot.PlanKey != "free" {
			t.Errorf("%s, no longer held: %+v", ws, got)
		}
		if w := workspace(t, s, ws); w.Subscription != nil {
			t.Errorf("%s points to %+v", ws, w.Subscription)
		}
	}
}
