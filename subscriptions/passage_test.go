package subscriptions_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// ours is a subscription by hand to a month from the first of November.
func ours(change func(*subscriptions.Subscription)) subscriptions.Subscription {
	row := *openRow(func(s *subscriptions.Subscription) {
		s.Source, s.Interval, s.Anchor = subscriptions.SourceEnterprise, subscriptions.Monthly, november.Start
	})
	if change != nil {
		change(&row)
	}
	return row
}

func TestPassage(t *testing.T) {
	t.Parallel()
	trial := func(after string) func(*subscriptions.Subscription) {
		return func(s *subscriptions.Subscription) {
			s.Status, s.AfterTrial, s.Anchor = "trialing", after, s.Billing.End
		}
	}
	cancel := func(at time.Time) func(*subscriptions.Subscription) {
		return func(s *subscriptions.Subscription) { s.CancelAt = &at }
	}
	after, long := november.End, november.End.AddDate(0, 7, 3)
	for name, c := range map[string]struct {
		row    subscriptions.Subscription
		at     time.Time
		status string
		plan   string
		start  time.Time
		ended  time.Time
	}{
		"a period that runs":                 {ours(nil), after.Add(-1), "active", "pro", november.Start, time.Time{}},
		"a period that is over":              {ours(nil), after, "active", "pro", after, time.Time{}},
		"over for months":                    {ours(nil), long, "active", "pro", november.End.AddDate(0, 7, 0), time.Time{}},
		"over, of Stripe":                    {*openRow(nil), long, "active", "pro", november.Start, time.Time{}},
		"over, without an interval":          {ours(func(s *subscriptions.Subscription) { s.Interval = subscriptions.Interval{} }), long, "active", "pro", november.Start, time.Time{}},
		"set to end, and not there yet":      {ours(cancel(noon)), noon.Add(-time.Second), "active", "pro", november.Start, time.Time{}},
		"set to end in mid-period":           {ours(cancel(noon)), noon, "canceled", "pro", november.Start, noon},
		"set to end months ago":              {ours(cancel(after)), long, "canceled", "pro", november.Start, after},
		"set to end, of Stripe":              {*openRow(cancel(noon)), long, "active", "pro", november.Start, time.Time{}},
		"a trial that runs":                  {ours(trial("expire")), noon, "trialing", "pro", november.Start, time.Time{}},
		"a trial of Stripe's that is over":   {*openRow(trial("")), after, "trialing", "pro", november.Start, time.Time{}},
		"a trial to convert":                 {ours(trial("convert")), after, "active", "pro", after, time.Time{}},
		"a trial to convert, months ago":     {ours(trial("convert")), long, "active", "pro", november.End.AddDate(0, 7, 0), time.Time{}},
		"a trial that expires, months ago":   {ours(trial("expire")), long, "canceled", "pro", november.Start, after},
		"a trial to the default plan":        {ours(trial("default")), after, "active", "", after, time.Time{}},
		"a past_due period that is over":     {ours(status("past_due")), after, "past_due", "pro", after, time.Time{}},
		"a quota that is over is no passage": {*openRow(func(s *subscriptions.Subscription) { s.PeriodEnd = noon }), noon, "active", "pro", november.Start, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := subscriptions.Passage(c.row, c.at)
			if got.Status != c.status || got.PlanKey != c.plan || !got.Period.Start.Equal(c.start) || (got.EndedAt != nil) != (c.status == "canceled") {
				t.Fatalf("state is %+v", got)
			}
			if got.EndedAt != nil && !got.EndedAt.Equal(c.ended) {
				t.Errorf("ended %s, want %s", got.EndedAt, c.ended)
			}
			if got.Status == "active" && got.AfterTrial != "" {
				t.Errorf("after the trial there is another: %s", got.AfterTrial)
			}
		})
	}
}

func TestEntitledByWhatTimeHasMadeOfIt(t *testing.T) {
	t.Parallel()
	edge := november.End.Add(subscriptions.DefaultOverdueGrace)
	for name, c := range map[string]struct {
		row    subscriptions.Subscription
		policy subscriptions.Policy
		until  time.Time
	}{
		"Stripe's, without news":         {*openRow(nil), subscriptions.Policy{}, edge},
		"Stripe's, with another grace":   {*openRow(nil), subscriptions.Policy{OverdueGrace: time.Hour}, november.End.Add(time.Hour)},
		"Stripe's, without a grace":      {*openRow(nil), subscriptions.Policy{OverdueGrace: -1}, november.End},
		"by hand, without an interval":   {ours(func(s *subscriptions.Subscription) { s.Interval = subscriptions.Interval{} }), subscriptions.Policy{}, november.End},
		"by hand, set to end":            {ours(func(s *subscriptions.Subscription) { s.CancelAt = &noon }), subscriptions.Policy{}, noon},
		"past due, longer than overdue":  {*openRow(status("past_due")), subscriptions.Policy{PastDueGrace: 90 * 24 * time.Hour}, edge},
		"past due, shorter than overdue": {*openRow(status("past_due")), subscriptions.Policy{}, november.Start.Add(subscriptions.DefaultPastDueGrace)},
	} {
		if !c.policy.Entitled(c.row, c.until.Add(-1)) || c.policy.Entitled(c.row, c.until) {
			t.Errorf("%s: it is not entitled exactly until %s", name, c.until)
		}
	}
	if row := ours(nil); !(subscriptions.Policy{}).Entitled(row, november.End.AddDate(1, 0, 0)) {
		t.Error("a period with an interval stops counting before it is renewed")
	}
}

func TestATrialThatIsOver(t *testing.T) {
	t.Parallel()
	caughtUp(t, func(t *testing.T, catchUp func(*subscriptions.Store, *pgxpool.Pool)) {
		s, pool := newStore(t)
		apply(t, s)
		start := now(t, pool).Add(-15 * 24 * time.Hour).Truncate(time.Second)
		end := start.Add(14 * 24 * time.Hour)
		for after, want := range map[string]struct{ plan, status, kind, news string }{
			"convert": {"pro", "active", "trial_end", "renewed trial_end"},
			"expire":  {"free", "none", "", "renewed ended"},
			"default": {"free", "active", "trial_end", "renewed trial_end"},
		} {
			execute(t, pool, `DELETE FROM outbox`)
			trial := assign(t, s, subscriptions.Assignment{Trial: "14d", AfterTrial: after, Start: &start, Now: start.Add(time.Hour)})
			if trial.Status != "trialing" || !trial.PeriodEnd.Equal(end) || !trial.Anchor.Equal(end) || trial.AfterTrial != after {
				t.Fatalf("%s: the trial is %+v", after, trial)
			}
			if during := planInfo(t, s, end.Add(-1)); during.SubscriptionID != trial.ID || during.Status != "trialing" {
				t.Errorf("%s: during the trial: %+v", after, during)
			}
			catchUp(s, pool)
			got := planInfo(t, s, now(t, pool))
			if got.Snapshot.PlanKey != want.plan || got.Status != want.status || got.UsageEpoch == trial.UsageEpoch || got.Revision != 2 {
				t.Errorf("%s: after the trial: %+v", after, got)
			}
			wantTold(t, pool, "renewed created", "invalidated 1", want.news, "invalidated 2")
			wantAfterTrial(t, history(t, s, "acme")[0].Subscription, trial, want.kind)
			execute(t, pool, `TRUNCATE subscriptions, subscription_changes, workspaces CASCADE`)
		}
	})
}

// wantAfterTrial checks a workspace's newest row after a trial: of the kind, or the
// trial itself, ended, if there is none.
func wantAfterTrial(t *testing.T, last, trial subscriptions.Subscription, kind string) {
	t.Helper()
	end := trial.PeriodEnd
	if kind == "" {
		if last.ID != trial.ID || last.Status != "canceled" || !last.EndedAt.Equal(end) {
			t.Errorf("row is %+v", last)
		}
		return
	}
	if last.Kind != kind || !last.PeriodStart.Equal(end) || last.AfterTrial != "" || last.UsageEpoch != last.ID ||
		!last.PeriodEnd.Equal(subscriptions.Monthly.Period(end, end).End) {
		t.Errorf("row is %+v", last)
	}
}

func TestATrialThatExpiresLeavesTheOtherSubscription(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	other := follow(t, s, running(t, pool, "sub_1", "free"))
	start := now(t, pool).Add(-15 * 24 * time.Hour)
	assign(t, s, subscriptions.Assignment{Trial: "14d", AfterTrial: "expire", Start: &start, Now: start.Add(time.Hour)})
	if got := planInfo(t, s, now(t, pool)); got.SubscriptionID != other.ID {
		t.Errorf("after the trial: %+v", got)
	}
}

func TestAGraceThatRunsOutMovesThePointer(t *testing.T) {
	t.Parallel()
	caughtUp(t, func(t *testing.T, catchUp func(*subscriptions.Store, *pgxpool.Pool)) {
		s, pool := newStore(t)
		apply(t, s)
		state := running(t, pool, "sub_1", "pro")
		state.Status, state.PaymentState = "past_due", "failed"
		row := follow(t, s, state)
		until := state.Period.Start.Add(subscriptions.DefaultPastDueGrace)
		if got := planInfo(t, s, now(t, pool)); got.SubscriptionID != row.ID || !got.ValidUntil.Equal(until) || !got.Period.End.Equal(row.PeriodEnd) {
			t.Errorf("within the grace: %+v", got)
		}
		elapse(t, pool, 14*24*time.Hour)
		catchUp(s, pool)
		if got := planInfo(t, s, now(t, pool)); got.SubscriptionID != "" || got.Snapshot.PlanKey != "free" || got.Revision != 2 {
			t.Errorf("after the grace: %+v", got)
		}
		wantTold(t, pool, "renewed created", "invalidated 1", "invalidated 2")
		if w := workspace(t, s, "acme"); w.Subscription != nil {
			t.Errorf("the workspace still points to %+v", w.Subscription)
		}
		state.Period.Start, state.Period.End = row.PeriodStart.AddDate(0, 0, -14), row.PeriodEnd.AddDate(0, 0, -14)
		state.Status, state.PaymentState = "active", "paid"
		if again := follow(t, s, state); again.ID != row.ID {
			t.Errorf("the payment opened %+v", again)
		}
		wantActive(t, s, row.ID, 3)
	})
}

func TestASettingOfAGraceHoldsForThoseInIt(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	state := running(t, pool, "sub_1", "pro")
	state.Status = "past_due"
	row := follow(t, s, state)
	stop := lifecycle(t, subscriptions.Policy{PastDueGrace: time.Hour}, schematest.Logger(t))
	eventually(t, "a shorter grace is over", func() bool { return workspace(t, s, "acme").Subscription == nil })
	stop()
	lifecycle(t, subscriptions.Policy{}, schematest.Logger(t))
	eventually(t, "a longer grace is not", func() bool {
		w := workspace(t, s, "acme")
		return w.Subscription != nil && w.Subscription.ID == row.ID
	})
}

func TestAnEndInMidPeriod(t *testing.T) {
	t.Parallel()
	caughtUp(t, func(t *testing.T, catchUp func(*subscriptions.Store, *pgxpool.Pool)) {
		s, pool := newStore(t)
		apply(t, s)
		start := now(t, pool).Add(-48 * time.Hour)
		row := assign(t, s, subscriptions.Assignment{Start: &start, Now: start.Add(time.Minute)})
		execute(t, pool, `UPDATE subscriptions SET cancel_at = now() + interval '1 hour', due_at = now() + interval '1 hour'`)
		at := now(t, pool)
		if got := planInfo(t, s, at); got.SubscriptionID != row.ID || !got.ValidUntil.After(at) || got.ValidUntil.After(at.Add(time.Hour)) {
			t.Errorf("before its end: %+v", got)
		}
		elapse(t, pool, 2*time.Hour)
		catchUp(s, pool)
		if got := planInfo(t, s, now(t, pool)); got.SubscriptionID != "" {
			t.Errorf("after its end: %+v", got)
		}
		wantTold(t, pool, "renewed created", "invalidated 1", "renewed ended", "invalidated 2")
	})
}
