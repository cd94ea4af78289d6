package subscriptions_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

// world is a workspace's rows as transitions leave them, oldest first, for each
// of two subscriptions.
type world struct {
	t      *testing.T
	policy subscriptions.Policy
	now    time.Time
	rows   [2][]subscriptions.Subscription
	active string
	made   int
}

var fuzzedStatuses = []string{
	"active", "trialing", "past_due", "incomplete", "unpaid", "paused", "canceled", "incomplete_expired", "mystery",
}

// FuzzTransitions feeds any sequence of states, in any order, of two
// subscriptions of a workspace. Three bytes are one state.
func FuzzTransitions(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 31, 0, 6, 31, 0, 0, 62})
	f.Add([]byte{1, 0, 4, 0, 2, 4, 64, 1, 8, 1, 0, 200})
	f.Add([]byte{3, 16, 4, 3, 48, 40, 1, 0, 40, 3, 32, 40, 2, 6, 40})
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) == 0 || len(input) > 300 {
			return
		}
		w := &world{t: t, now: november.Start, policy: subscriptions.Policy{
			ResetOnAnchorReset: input[0]&1 == 1, ResetOnPlanChange: input[0]&4 == 4, HoldUnpaid: input[0]&2 == 2,
		}}
		for ; len(input) >= 3; input = input[3:] {
			w.take(input[0], input[1], input[2])
		}
	})
}

func (w *world) take(a, b, c byte) {
	which := int(a & 1)
	key := stripeKey
	key.SourceID = strconv.Itoa(which)
	start := november.Start.AddDate(0, 0, int(c))
	w.now = w.now.AddDate(0, 0, int(a>>1&3))
	state := subscriptions.SourceState{
		WorkspaceID: "acme", Key: key, Quantity: 1,
		Status:       fuzzedStatuses[int(b&15)%len(fuzzedStatuses)],
		PaymentState: []string{"none", "pending", "paid", "failed"}[b>>4&3],
		PlanKey:      []string{"basic", "pro"}[b>>6&1],
		Period:       subscriptions.Period{Start: start, End: start.AddDate(0, 0, 1+int(a>>3))},
	}
	w.made++
	m := subscriptions.Moment{Says: state, Terms: termsOf(state.PlanKey), Policy: w.policy, Now: w.now, NextID: strconv.Itoa(1000 + w.made)}
	if rows := w.rows[which]; len(rows) > 0 {
		m.Last = &rows[len(rows)-1]
	}
	action := subscriptions.Transition(m)
	w.carryOut(which, m, action)
	w.elect(action)
	w.checkRows(which)
	if rows := w.rows[which]; len(rows) > 0 {
		m.Last = &rows[len(rows)-1]
		if again := subscriptions.Transition(m); again.Verb != "none" && again.Verb != "stale" {
			w.t.Fatalf("the same state again after %s: %s of %v", action.Verb, again.Verb, again.Changes)
		}
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
		rows[len(rows)-1] = *action.Closes
		w.rows[which] = append(rows, action.Row)
	case "amend", "close":
		old := rows[len(rows)-1]
		if action.Row.ID != old.ID || action.Row.UsageEpoch != old.UsageEpoch || !action.Row.PeriodStart.Equal(old.PeriodStart) {
			w.t.Fatalf("%s of %+v makes it %+v", action.Verb, old, action.Row)
		}
		rows[len(rows)-1] = action.Row
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
