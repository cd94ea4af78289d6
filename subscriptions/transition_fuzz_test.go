package subscriptions_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

// world is a workspace's rows as transitions leave them, oldest first, for each
// of two subscriptions: one of Stripe's, and one that renews by itself.
type world struct {
	t      *testing.T
	policy subscriptions.Policy
	now    time.Time
	rows   [2][]subscriptions.Subscription
	active string
	made   int
}

var (
	fuzzedStatuses = []string{
		"active", "trialing", "past_due", "incomplete", "unpaid", "paused", "canceled", "incomplete_expired", "mystery",
	}
	fuzzedIntervals = []string{"month", "year", "10d", "40d"}
	// The plans whose names say so have a quota of a month.
	fuzzedPlans = []string{"basic", "pro", "basic monthly", "pro monthly"}
)

// timePasses is the status of an event that is no state: only the clock goes on.
const timePasses = 15

// FuzzTransitions feeds any sequence of states, in any order, of two
// subscriptions of a workspace, and lets time pass between them. Three bytes are one
// state, or one span of time.
func FuzzTransitions(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 31, 0, 6, 31, 0, 0, 62})
	f.Add([]byte{1, 0, 4, 0, 2, 4, 64, 1, 8, 1, 0, 200})
	f.Add([]byte{3, 16, 4, 3, 48, 40, 1, 0, 40, 3, 32, 40, 2, 6, 40})
	f.Add([]byte{0, 128, 0, 0, 15, 40, 0, 192, 0, 0, 64, 0, 0, 15, 200, 0, 15, 255})
	f.Add([]byte{9, 128, 0, 0, 15, 70, 9, 0, 0, 0, 15, 70, 9, 128, 0, 0, 15, 255, 1, 1, 100, 0, 15, 40})
	f.Add([]byte{2, 144, 0, 0, 15, 31, 2, 144, 31, 0, 15, 60, 2, 128, 31, 0, 15, 90})
	f.Add([]byte{49, 227, 48, 48, 207, 88, 49, 50, 48, 48, 48, 48, 48, 48, 48}) // a barred period whose quota was over went to a plan without
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) == 0 || len(input) > 300 {
			return
		}
		w := &world{t: t, now: november.Start, policy: subscriptions.Policy{
			ResetOnAnchorReset: input[0]&1 == 1, ResetOnPlanChange: input[0]&4 == 4, HoldUnpaid: input[0]&2 == 2,
		}}
		for ; len(input) >= 3; input = input[3:] {
			if input[1]&15 == timePasses {
				w.pass(int(input[2]))
			} else {
				w.take(input[0], input[1], input[2])
			}
		}
	})
}

func (w *world) take(a, b, c byte) {
	which := int(a & 1)
	w.now = w.now.AddDate(0, 0, int(a>>1&3))
	state := fuzzedState(a, b, c)
	w.step(which, state, fuzzedTerms(state.PlanKey))
	m := w.moment(which, state, fuzzedTerms(state.PlanKey))
	if again := subscriptions.Transition(m); m.Last != nil && again.Verb != "none" && again.Verb != "stale" {
		w.t.Fatalf("the same state again: %s of %v", again.Verb, again.Changes)
	}
}

func fuzzedState(a, b, c byte) subscriptions.SourceState {
	which, span := int(a&1), int(a>>3)
	key := stripeKey
	key.SourceID = strconv.Itoa(which)
	start := november.Start.AddDate(0, 0, int(c))
	state := subscriptions.SourceState{
		WorkspaceID: "acme", Key: key, Quantity: 1,
		Status:       fuzzedStatuses[int(b&15)%len(fuzzedStatuses)],
		PaymentState: []string{"none", "pending", "paid", "failed"}[b>>4&3],
		PlanKey:      fuzzedPlans[b>>6&3],
		Period:       subscriptions.Period{Start: start, End: start.AddDate(0, span/2, 1)},
	}
	if span%2 == 0 {
		state.Period.End = start.AddDate(0, 0, 1+span)
	}
	if which == 1 {
		state.Key.Source, state.AfterTrial = subscriptions.SourceEnterprise, []string{"", "convert", "expire", "default"}[span%4]
		state.Interval, _ = subscriptions.ParseInterval(fuzzedIntervals[span/4%4])
		state.Anchor = start
		state.Period = state.Interval.Period(start, start)
		if span >= 24 {
			state.CancelAt = &state.Period.End
		}
	}
	return state
}

func fuzzedTerms(plan string) subscriptions.Snapshot {
	terms := termsOf(plan)
	if strings.HasSuffix(plan, "monthly") {
		terms.QuotaInterval = "month"
	}
	return terms
}

func (w *world) moment(which int, state subscriptions.SourceState, terms subscriptions.Snapshot) subscriptions.Moment {
	w.made++
	m := subscriptions.Moment{Says: state, Terms: terms, Policy: w.policy, Now: w.now, NextID: strconv.Itoa(1000 + w.made)}
	if rows := w.rows[which]; len(rows) > 0 {
		m.Last = &rows[len(rows)-1]
	}
	return m
}

func (w *world) step(which int, state subscriptions.SourceState, terms subscriptions.Snapshot) {
	m := w.moment(which, state, terms)
	action := subscriptions.Transition(m)
	w.carryOut(which, m, action)
	w.elect(action)
	w.checkRows(which)
}

// pass lets days go by and catches up.
func (w *world) pass(days int) {
	w.now = w.now.AddDate(0, 0, days)
	decisive := subscriptions.Action{Verb: "none"}
	for which, rows := range w.rows {
		if len(rows) == 0 || rows[len(rows)-1].ClosedAt != nil {
			continue
		}
		m := w.passing(which)
		action := subscriptions.Transition(m)
		w.carryOut(which, m, action)
		w.checkRows(which)
		w.checkPassed(which)
		if action.Verb == "none" || decisive.Verb == "roll" && decisive.Closes.ID == w.active {
			continue
		}
		decisive = action
	}
	w.elect(decisive)
}

func (w *world) passing(which int) subscriptions.Moment {
	last := w.rows[which][len(w.rows[which])-1]
	state := subscriptions.Passage(last, w.now)
	if state.PlanKey == "" {
		state.PlanKey = "basic"
	}
	return w.moment(which, state, fuzzedTerms(state.PlanKey))
}

// checkPassed checks that nothing is due twice.
func (w *world) checkPassed(which int) {
	last := w.rows[which][len(w.rows[which])-1]
	if last.ClosedAt != nil {
		return
	}
	if again := subscriptions.Transition(w.passing(which)); again.Verb != "none" {
		w.t.Fatalf("time has passed already, and again: %s of %+v", again.Verb, last)
	}
	counts := w.policy.Entitled(last, w.now) && !(w.policy.HoldUnpaid && last.Held)
	if counts && !w.now.Before(last.PeriodEnd) && last.PeriodEnd.Before(last.Billing.End) {
		w.t.Fatalf("at %s the quota of %+v is over", w.now, last)
	}
	if which == 1 && !w.now.Before(last.Billing.End) {
		w.t.Fatalf("at %s the period of %+v is over", w.now, last)
	}
}

func (w *world) carryOut(which int, m subscriptions.Moment, action subscriptions.Action) {
	rows := w.rows[which]
	if m.Last != nil && m.Last.ClosedAt != nil && action.Verb != "none" {
		w.t.Fatalf("%s of a subscription that has ended", action.Verb)
	}
	switch action.Verb {
	case "insert":
		w.rows[which] = append(rows, action.Row)
	case "roll":
		w.checkQuota(*m.Last, action.Row)
		rows[len(rows)-1] = *action.Closes
		w.rows[which] = append(rows, action.Row)
	case "amend", "close":
		old := rows[len(rows)-1]
		if action.Row.ID != old.ID || action.Row.UsageEpoch != old.UsageEpoch || !action.Row.PeriodStart.Equal(old.PeriodStart) {
			w.t.Fatalf("%s of %+v makes it %+v", action.Verb, old, action.Row)
		}
		rows[len(rows)-1] = action.Row
	}
	if due := action.Row.DueAt; action.Verb != "none" && action.Verb != "stale" && (action.Row.ClosedAt == nil) != (due != nil) {
		if action.Row.ClosedAt != nil || w.policy.Entitled(action.Row, w.now) && action.Row.OverdueSince == nil {
			w.t.Fatalf("%s leaves %+v due at %v", action.Verb, action.Row, due)
		}
	}
}

// checkQuota checks that a period that begins before the quota of the one before is
// over has no fresh one, unless a policy says so.
func (w *world) checkQuota(last, row subscriptions.Subscription) {
	fresh, early := row.UsageEpoch == row.ID, row.PeriodStart.Before(last.PeriodEnd)
	if !fresh && row.UsageEpoch != last.UsageEpoch {
		w.t.Fatalf("the quota of %+v is neither fresh nor that of %+v", row, last)
	}
	switch row.Kind {
	case "cycle":
		if !fresh || early {
			w.t.Fatalf("a cycle from %+v to %+v", last, row)
		}
	case "anchor_reset":
		if early && fresh != w.policy.ResetOnAnchorReset {
			w.t.Fatalf("an anchor reset from %+v to %+v", last, row)
		}
	case "plan_change":
		if early && fresh != w.policy.ResetOnPlanChange {
			w.t.Fatalf("a change of plan from %+v to %+v", last, row)
		}
	}
}

func (w *world) elect(action subscriptions.Action) {
	election := subscriptions.Election{Action: action, Active: w.active, Policy: w.policy, Now: w.now}
	for _, rows := range w.rows {
		if n := len(rows); n > 0 && rows[n-1].ClosedAt == nil {
			election.Open = append(election.Open, subscriptions.Candidate{Subscription: rows[n-1], Rank: len(rows[n-1].PlanKey)})
		}
	}
	w.active = election.Winner()
	if w.active == "" && election.Live() > 0 {
		w.t.Fatalf("nobody counts among %+v", election.Open)
	}
	ok := w.active == ""
	for _, c := range election.Open {
		held := w.policy.Held(c.Subscription, w.now)
		ok = ok || c.ID == w.active && w.policy.Entitled(c.Subscription, w.now) && !held ||
			held && *c.PreviousID == w.active
	}
	if !ok {
		w.t.Fatalf("%s counts, which is neither live nor before a held period: %+v", w.active, election.Open)
	}
}

func (w *world) checkRows(which int) {
	rows := w.rows[which]
	for i, row := range rows {
		end := row.PeriodEnd
		if row.ClosedAt != nil && row.ClosedAt.Before(end) {
			end = *row.ClosedAt
		}
		if !row.PeriodStart.Before(row.PeriodEnd) || end.Before(row.PeriodStart) {
			w.t.Fatalf("a period from %s to %s, closed %v", row.PeriodStart, row.PeriodEnd, row.ClosedAt)
		}
		if row.PeriodStart.Before(row.Billing.Start) || row.PeriodEnd.After(row.Billing.End) {
			w.t.Fatalf("a period from %s to %s in the billing period %v", row.PeriodStart, row.PeriodEnd, row.Billing)
		}
		if i == len(rows)-1 {
			return
		}
		if row.ClosedAt == nil || row.EndedAt != nil {
			w.t.Fatalf("row %s is followed by another: closed %v, ended %v", row.ID, row.ClosedAt, row.EndedAt)
		}
		if next := rows[i+1]; !next.PeriodStart.After(row.PeriodStart) || end.After(next.PeriodStart) || *next.PreviousID != row.ID {
			w.t.Fatalf("row %s until %s is followed by %+v", row.ID, end, next)
		}
	}
}
