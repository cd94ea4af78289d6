package subscriptions_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

var (
	stripeKey = subscriptions.SubscriptionKey{Source: subscriptions.SourceStripe, Account: "acct", Livemode: true, SourceID: "sub_1"}
	december  = subscriptions.Period{Start: november.End, End: november.End.AddDate(0, 1, 0)}
)

func termsOf(plan string) subscriptions.Snapshot {
	return subscriptions.Snapshot{PlanKey: plan, PlanRevision: 1, Limits: schemas.Limits{MaxExecutions: schemas.LimitOf(int64(len(plan)))}}
}

// novemberState is an active, paid month of pro.
func novemberState() subscriptions.SourceState {
	return subscriptions.SourceState{
		WorkspaceID: "acme", Key: stripeKey, Status: "active", PaymentState: "paid",
		PlanKey: "pro", Quantity: 1, Period: november,
	}
}

// say is a moment in which the source says a November that the change alters.
func say(last *subscriptions.Subscription, change func(*subscriptions.SourceState)) subscriptions.Moment {
	state := novemberState()
	if change != nil {
		change(&state)
	}
	return subscriptions.Moment{
		Last: last, Says: state, Terms: termsOf(state.PlanKey), Now: noon, NextID: "next",
	}
}

// openRow is what novemberState becomes, changed.
func openRow(change func(*subscriptions.Subscription)) *subscriptions.Subscription {
	m := say(nil, nil)
	m.NextID = "first"
	row := subscriptions.Transition(m).Row
	if change != nil {
		change(&row)
	}
	return &row
}

func TestTransitionOfAnUnknownSubscription(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]subscriptions.Verb{
		"trialing": "insert", "active": "insert", "past_due": "insert", "incomplete": "insert",
		"unpaid": "none", "paused": "none", "canceled": "none", "incomplete_expired": "none", "mystery": "none",
	} {
		m := say(nil, func(s *subscriptions.SourceState) { s.Status = status })
		m.Now = november.Start.Add(time.Hour)
		got := subscriptions.Transition(m)
		if got.Verb != want || (got.UnknownStatus != "") != (status == "mystery") {
			t.Errorf("%s: %s, unknown %q; want %s", status, got.Verb, got.UnknownStatus, want)
		}
		if want == "insert" && (got.Row.ID != "next" || got.Row.UsageEpoch != "next" || got.Row.Kind != "created" || got.Row.Period() != november) {
			t.Errorf("%s: row is %+v", status, got.Row)
		}
	}
	long := say(nil, func(s *subscriptions.SourceState) { s.Status = "past_due" })
	long.Now = november.Start.Add(subscriptions.DefaultPastDueGrace)
	if got := subscriptions.Transition(long); got.Verb != "none" {
		t.Errorf("past due beyond the grace: %s, want none", got.Verb)
	}
}

func TestTransitionWithinAPeriod(t *testing.T) {
	t.Parallel()
	at := noon.Add(time.Hour)
	for name, c := range map[string]struct {
		change func(*subscriptions.SourceState)
		verb   subscriptions.Verb
		fields []string
	}{
		"nothing new":               {nil, "none", nil},
		"the same in another zone":  {func(s *subscriptions.SourceState) { s.Period.Start = s.Period.Start.In(time.FixedZone("", 3600)) }, "none", nil},
		"finer than what is stored": {func(s *subscriptions.SourceState) { s.Period.End = s.Period.End.Add(999) }, "none", nil},
		"another plan":              {func(s *subscriptions.SourceState) { s.PlanKey = "basic" }, "amend", []string{"plan_key", "limits.max_executions"}},
		"another end":               {func(s *subscriptions.SourceState) { s.Period.End = at }, "amend", []string{"period_end"}},
		"another quantity":          {func(s *subscriptions.SourceState) { s.Quantity = 5 }, "amend", []string{"quantity"}},
		"another status":            {func(s *subscriptions.SourceState) { s.Status = "past_due" }, "amend", []string{"status"}},
		"another payment":           {func(s *subscriptions.SourceState) { s.PaymentState = "failed" }, "amend", []string{"payment_state"}},
		"set to end":                {func(s *subscriptions.SourceState) { s.CancelAt = &at }, "amend", []string{"cancel_at"}},
		"a period before":           {func(s *subscriptions.SourceState) { s.Period.Start = s.Period.Start.AddDate(0, -1, 0) }, "stale", nil},
		"canceled":                  {func(s *subscriptions.SourceState) { s.Status, s.EndedAt = "canceled", &at }, "close", []string{"status", "ended_at"}},
		"canceled, with an old period": {func(s *subscriptions.SourceState) {
			s.Status, s.Period.Start = "canceled", s.Period.Start.AddDate(0, -1, 0)
		}, "close", []string{"status", "ended_at"}},
		"never completed":       {func(s *subscriptions.SourceState) { s.Status = "incomplete_expired" }, "close", []string{"status", "ended_at"}},
		"a status nobody knows": {func(s *subscriptions.SourceState) { s.Status = "mystery" }, "none", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := openRow(nil)
			got := subscriptions.Transition(say(open, c.change))
			var fields []string
			for _, change := range got.Changes {
				fields = append(fields, change.Field)
			}
			if diff := cmp.Diff(c.fields, fields); diff != "" || got.Verb != c.verb {
				t.Errorf("verb is %s, want %s; fields (-want +got):\n%s", got.Verb, c.verb, diff)
			}
			if got.Row.ID != open.ID || got.Row.UsageEpoch != open.UsageEpoch || !got.Row.PeriodStart.Equal(open.PeriodStart) {
				t.Errorf("row is %+v, want the same id, start and usage", got.Row)
			}
		})
	}
}

func TestTransitionKeepsTheTermsThatAPeriodWasOpenedWith(t *testing.T) {
	t.Parallel()
	m := say(openRow(nil), func(s *subscriptions.SourceState) { s.Quantity = 2 })
	m.Terms.PlanRevision = 7
	if got := subscriptions.Transition(m).Row.Snapshot.PlanRevision; got != 1 {
		t.Errorf("a change of the quantity took over revision %d", got)
	}
	m.Retake = true
	if got := subscriptions.Transition(m).Row; got.PlanRevision != 7 || got.Snapshot.PlanRevision != 7 {
		t.Errorf("retaken terms are of revision %d", got.PlanRevision)
	}
}

func TestTransitionEndsASubscriptionForGood(t *testing.T) {
	t.Parallel()
	before := november.Start.Add(-time.Hour)
	late := noon.Add(-time.Hour)
	for name, c := range map[string]struct {
		says          *time.Time
		ended, closed time.Time
	}{
		"at the end that the source states": {&late, late, late},
		"now, if it states none":            {nil, noon, noon},
		"not before the period began":       {&before, before, november.Start},
	} {
		got := subscriptions.Transition(say(openRow(nil), func(s *subscriptions.SourceState) { s.Status, s.EndedAt = "canceled", c.says }))
		if !got.Row.EndedAt.Equal(c.ended) || !got.Row.ClosedAt.Equal(c.closed) || got.Row.Status != "canceled" {
			t.Errorf("%s: ended %s, closed %s, %s", name, got.Row.EndedAt, got.Row.ClosedAt, got.Row.Status)
		}
		again := subscriptions.Transition(say(&got.Row, func(s *subscriptions.SourceState) { s.Period = december }))
		if again.Verb != "none" {
			t.Errorf("%s: a later active state makes it %s", name, again.Verb)
		}
	}
}

func TestTransitionRolls(t *testing.T) {
	t.Parallel()
	early := subscriptions.Period{Start: noon, End: noon.AddDate(0, 1, 0)}
	for name, c := range map[string]struct {
		row    func(*subscriptions.Subscription)
		change func(*subscriptions.SourceState)
		policy subscriptions.Policy
		kind   string
		carry  bool
	}{
		"at the end":                       {nil, func(s *subscriptions.SourceState) { s.Period = december }, subscriptions.Policy{}, "cycle", false},
		"at the end, to another plan":      {nil, func(s *subscriptions.SourceState) { s.Period, s.PlanKey = december, "basic" }, subscriptions.Policy{}, "cycle", false},
		"before the end":                   {nil, func(s *subscriptions.SourceState) { s.Period = early }, subscriptions.Policy{}, "anchor_reset", true},
		"before the end, to be reset":      {nil, func(s *subscriptions.SourceState) { s.Period = early }, subscriptions.Policy{ResetOnAnchorReset: true}, "anchor_reset", false},
		"before the end, to another plan":  {nil, func(s *subscriptions.SourceState) { s.Period, s.PlanKey = early, "basic" }, subscriptions.Policy{}, "plan_change", true},
		"to another plan, to be reset":     {nil, func(s *subscriptions.SourceState) { s.Period, s.PlanKey = early, "basic" }, subscriptions.Policy{ResetOnPlanChange: true}, "plan_change", false},
		"when the trial ends":              {func(s *subscriptions.Subscription) { s.Status = "trialing" }, func(s *subscriptions.SourceState) { s.Period = early }, subscriptions.Policy{}, "trial_end", false},
		"when a pause ends":                {func(s *subscriptions.Subscription) { s.Status = "paused" }, func(s *subscriptions.SourceState) { s.Period = early }, subscriptions.Policy{}, "resume", false},
		"as the source says":               {nil, func(s *subscriptions.SourceState) { s.Period, s.Kind = early, "cycle" }, subscriptions.Policy{}, "cycle", false},
		"with a status that nobody knows":  {nil, func(s *subscriptions.SourceState) { s.Period, s.Status = december, "mystery" }, subscriptions.Policy{}, "cycle", false},
		"with a status that bars from use": {nil, func(s *subscriptions.SourceState) { s.Period, s.Status = december, "unpaid" }, subscriptions.Policy{}, "cycle", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := openRow(c.row)
			m := say(open, c.change)
			m.Policy = c.policy
			got := subscriptions.Transition(m)
			if got.Verb != "roll" || got.Row.Kind != c.kind || (got.Row.UsageEpoch == open.UsageEpoch) != c.carry {
				t.Fatalf("%s of kind %s on epoch %s", got.Verb, got.Row.Kind, got.Row.UsageEpoch)
			}
			if got.Row.ID != "next" || *got.Row.PreviousID != open.ID || got.Closes.ID != open.ID || !got.Closes.ClosedAt.Equal(m.Says.Period.Start) {
				t.Errorf("row is %+v after %+v", got.Row, got.Closes)
			}
			if got.Row.GapFrom != nil || open.ClosedAt != nil {
				t.Errorf("gap from %v; the given row is closed at %v", got.Row.GapFrom, open.ClosedAt)
			}
		})
	}
}

func TestTransitionNotesAGapAndInventsNoPeriods(t *testing.T) {
	t.Parallel()
	march := subscriptions.Period{Start: instant(t, "2027-03-01"), End: instant(t, "2027-04-01")}
	got := subscriptions.Transition(say(openRow(nil), func(s *subscriptions.SourceState) { s.Period = march }))
	if got.Verb != "roll" || got.Row.GapFrom == nil || !got.Row.GapFrom.Equal(november.End) || !got.Closes.ClosedAt.Equal(march.Start) {
		t.Errorf("%s with a gap from %v, closed at %v", got.Verb, got.Row.GapFrom, got.Closes.ClosedAt)
	}
}

func TestEntitled(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]bool{
		"trialing": true, "active": true, "past_due": true, "incomplete": false, "incomplete_expired": false,
		"unpaid": false, "paused": false, "canceled": false, "mystery": false,
	} {
		row := openRow(func(s *subscriptions.Subscription) { s.Status = status })
		if got := (subscriptions.Policy{}).Entitled(*row, november.Start); got != want {
			t.Errorf("%s is entitled: %t, want %t", status, got, want)
		}
	}
}

func TestGraceCountsFromTheFirstUnpaidPeriod(t *testing.T) {
	t.Parallel()
	pastDue := func(s *subscriptions.SourceState) { s.Status = "past_due" }
	late := subscriptions.Transition(say(openRow(nil), pastDue)).Row
	week := november.Start.AddDate(0, 0, 7)
	rolled := subscriptions.Transition(say(&late, func(s *subscriptions.SourceState) {
		pastDue(s)
		s.Period.Start = week
	})).Row
	edge := november.Start.Add(subscriptions.DefaultPastDueGrace)
	if p := (subscriptions.Policy{}); !p.Entitled(rolled, edge.Add(-1)) || p.Entitled(rolled, edge) {
		t.Errorf("the grace of the period from %s counts from %v", rolled.PeriodStart, rolled.UnpaidSince)
	}
	if p := (subscriptions.Policy{PastDueGrace: time.Hour}); !p.Entitled(late, november.Start) || p.Entitled(late, november.Start.Add(time.Hour)) {
		t.Error("a grace of an hour is not kept")
	}
	if p := (subscriptions.Policy{PastDueGrace: -1}); p.Entitled(late, november.Start) {
		t.Error("without a grace a past_due subscription is entitled")
	}
	paid := subscriptions.Transition(say(&rolled, func(s *subscriptions.SourceState) { s.Period.Start = week })).Row
	if paid.UnpaidSince != nil {
		t.Errorf("once paid it is unpaid since %s", paid.UnpaidSince)
	}
}
