package subscriptions_test

import (
	"testing"

	"github.com/headroomhq/headroom/subscriptions"
)

// candidate is an open, active period.
func candidate(id string, rank int, change func(*subscriptions.Subscription)) subscriptions.Candidate {
	row := *openRow(change)
	row.ID, row.SourceID = id, "sub_"+id
	return subscriptions.Candidate{Subscription: row, Rank: rank}
}

func status(word string) func(*subscriptions.Subscription) {
	return func(s *subscriptions.Subscription) { s.Status = word }
}

// renewed is a period that follows another, in a state of payment, and began under a
// policy that holds what is not paid.
func renewed(previous, payment string) func(*subscriptions.Subscription) {
	return func(s *subscriptions.Subscription) {
		s.PreviousID, s.PaymentState = &previous, payment
		s.Held = payment == "pending" || payment == "failed"
	}
}

func TestElection(t *testing.T) {
	t.Parallel()
	type candidates = []subscriptions.Candidate
	inserted := subscriptions.Action{Verb: "insert"}
	amended := subscriptions.Action{Verb: "amend", Changes: []subscriptions.FieldChange{{Field: "payment_state"}}}
	rolled := func(c subscriptions.Candidate) subscriptions.Action {
		return subscriptions.Action{Verb: "roll", Row: c.Subscription, Closes: &subscriptions.Subscription{ID: *c.PreviousID, PlanKey: c.PlanKey}}
	}
	moved := func(c subscriptions.Candidate) subscriptions.Action {
		action := rolled(c)
		action.Closes.PlanKey = "another"
		return action
	}
	low, high := candidate("a", 1, nil), candidate("b", 2, nil)
	lowKey := low.Key()
	next, unpaid := candidate("c", 1, renewed("a", "paid")), candidate("c", 1, renewed("a", "pending"))
	barred := candidate("c", 1, func(s *subscriptions.Subscription) { renewed("a", "failed")(s); s.Status = "unpaid" })
	hold := subscriptions.Policy{HoldUnpaid: true}
	for name, c := range map[string]struct {
		election subscriptions.Election
		want     string
	}{
		"nobody":                                {subscriptions.Election{Action: inserted}, ""},
		"nobody that is entitled":               {subscriptions.Election{Action: inserted, Open: candidates{candidate("a", 1, status("unpaid"))}}, ""},
		"the highest rank":                      {subscriptions.Election{Action: inserted, Open: candidates{high, low}, Active: "a"}, "b"},
		"the newest of one rank":                {subscriptions.Election{Action: inserted, Open: candidates{candidate("x", 1, nil), candidate("y", 1, nil)}}, "y"},
		"the pinned one":                        {subscriptions.Election{Action: inserted, Open: candidates{low, high}, Pinned: &lowKey}, "a"},
		"another while the pinned one is away":  {subscriptions.Election{Action: inserted, Open: candidates{high}, Pinned: &lowKey}, "b"},
		"the end of another changes nothing":    {subscriptions.Election{Action: subscriptions.Action{Verb: "close"}, Open: candidates{low, high}, Active: "a"}, "a"},
		"the end of the one that counted":       {subscriptions.Election{Action: subscriptions.Action{Verb: "close"}, Open: candidates{low, high}, Active: "gone"}, "b"},
		"a renewal is followed":                 {subscriptions.Election{Action: rolled(next), Open: candidates{next, high}, Active: "a"}, "c"},
		"the renewal of another is not":         {subscriptions.Election{Action: rolled(next), Open: candidates{next, high}, Active: "b"}, "b"},
		"a renewal that is barred loses":        {subscriptions.Election{Action: rolled(barred), Open: candidates{barred, high}, Active: "a"}, "b"},
		"a renewal to another plan is not":      {subscriptions.Election{Action: moved(next), Open: candidates{next, high}, Active: "a"}, "b"},
		"an unpaid renewal is granted":          {subscriptions.Election{Action: rolled(unpaid), Open: candidates{unpaid}, Active: "a"}, "c"},
		"an unpaid renewal is held":             {subscriptions.Election{Action: rolled(unpaid), Open: candidates{unpaid, high}, Active: "a", Policy: hold}, "a"},
		"still held when others end":            {subscriptions.Election{Action: subscriptions.Action{Verb: "close"}, Open: candidates{unpaid}, Active: "a", Policy: hold}, "a"},
		"held, and another comes":               {subscriptions.Election{Action: inserted, Open: candidates{unpaid, high}, Active: "a", Policy: hold}, "b"},
		"held as long as it is not paid":        {subscriptions.Election{Action: amended, Open: candidates{unpaid}, Active: "a", Policy: hold}, "a"},
		"held no longer once it is paid":        {subscriptions.Election{Action: amended, Open: candidates{next}, Active: "a", Policy: hold}, "c"},
		"held no longer once it is barred":      {subscriptions.Election{Action: amended, Open: candidates{barred}, Active: "a", Policy: hold}, ""},
		"a first period is not held":            {subscriptions.Election{Action: inserted, Open: candidates{candidate("a", 1, func(s *subscriptions.Subscription) { s.PaymentState = "pending" })}, Policy: hold}, "a"},
		"a trial that costs nothing is no debt": {subscriptions.Election{Action: rolled(candidate("c", 1, renewed("a", "none"))), Open: candidates{candidate("c", 1, renewed("a", "none"))}, Active: "a", Policy: hold}, "c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.election.Now = noon
			if got := c.election.Winner(); got != c.want {
				t.Errorf("winner is %q, want %q", got, c.want)
			}
		})
	}
}
