package subscriptions_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/subscriptions"
)

func TestTheNewestIsTheOneThatItsSourceMadeLast(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	older, newer := running(t, pool, "sub_older", "pro"), running(t, pool, "sub_newer", "pro")
	older.SourceCreated, newer.SourceCreated = older.Period.Start.AddDate(-1, 0, 0), newer.Period.Start
	won := follow(t, s, newer)
	follow(t, s, older) // heard of last
	wantActive(t, s, won.ID, 1)
}

func TestNoRuleAboutThePresentHoldsOnATestClock(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	for name, at := range map[string]time.Time{"long ago": noon.AddDate(-3, 0, 0), "far ahead": noon.AddDate(3, 0, 0)} {
		state := running(t, pool, "sub_"+name, "pro")
		state.WorkspaceID = "clock_" + name[:3]
		state.Period = subscriptions.Period{Start: at, End: at.AddDate(0, 1, 0)}
		state.Status, state.TestClock = "past_due", true
		row := follow(t, s, state)
		if row.OverdueSince != nil {
			t.Errorf("%s: overdue since %v", name, row.OverdueSince)
		}
		info, err := s.PlanInfo(t.Context(), state.WorkspaceID, noon)
		if err != nil || info.SubscriptionID != row.ID || !info.Period.Contains(noon) {
			t.Errorf("%s: %+v, %v, want period %s", name, info, err, row.ID)
		}
	}
}

func TestAnUnresolvedPlanStaysWhileThePeriodGoesOn(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	state := running(t, pool, "sub_1", "pro")
	follow(t, s, state)
	state = nextPeriod(state)
	state.PlanKey, state.PlanUnresolved = "", true
	row := follow(t, s, state)
	if row.PlanKey != "pro" || !row.PlanUnresolved || !row.PeriodStart.Equal(state.Period.Start) {
		t.Errorf("%+v, want the next period on pro, unresolved", row)
	}
	state.Key.SourceID = "sub_unheard"
	if _, err := s.Follow(t.Context(), state, "a test"); !errors.Is(err, subscriptions.ErrUnknownPlan) {
		t.Errorf("without any plan: %v, want ErrUnknownPlan", err)
	}
}

func TestADisputeHoldsOnlyWhereThePolicySaysSo(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]subscriptions.Policy{"none": {}, "hold": {HoldDisputed: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, pool := newStore(t)
			s := subscriptions.NewStore(pool, subscriptions.StoreOptions{Policy: policy})
			apply(t, s)
			state := running(t, pool, "sub_1", "pro")
			row := follow(t, s, state)
			state.Disputed = true
			follow(t, s, state)
			disputed := row.ID
			if policy.HoldDisputed {
				disputed = ""
			}
			wantActive(t, s, disputed, 2)
			state.Disputed = false
			follow(t, s, state)
			wantActive(t, s, row.ID, 3)
		})
	}
}

func TestANoteIsWrittenOnceForEachChange(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	state := running(t, pool, "sub_1", "pro")
	row := follow(t, s, state)
	for _, value := range []string{"100 of 2500", "100 of 2500", "2500 of 2500"} {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			return s.NoteIn(t.Context(), tx, state.Key, subscriptions.Note{Field: "refund ch_1", Value: value, Cause: "a test"})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	rows, err := pool.Query(t.Context(), `SELECT coalesce(old_value #>> '{}', '') || ' to ' || (new_value #>> '{}')
		FROM subscription_changes WHERE subscription_id = $1 ORDER BY id`, row.ID)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	want := []string{" to 100 of 2500", "100 of 2500 to 2500 of 2500"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("changes (-want +got):\n%s%v", diff, err)
	}
}
