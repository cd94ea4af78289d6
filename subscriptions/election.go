package subscriptions

import (
	"cmp"
	"slices"
	"time"
)

// Candidate is an open period of a workspace, with its plan's rank.
type Candidate struct {
	Subscription
	Rank int
	// overrides are the workspace's, expired or not.
	overrides []Override
}

// Election finds which of a workspace's open periods counts.
type Election struct {
	// Open are the workspace's open periods, the action already carried out.
	Open   []Candidate
	Action Action
	// Active is the row that the workspace pointed to before, empty without one.
	Active string
	// Pinned is the subscription that counts whenever it is live, nil without one.
	Pinned *SubscriptionKey
	Policy Policy
	Now    time.Time
}

// Winner is the row that the workspace is to point to: the pinned subscription's,
// else the one of the highest rank, else the one that its source made last; empty if none is live. It is
// looked for when a subscription came or changed, and when the one that counted
// no longer does. Otherwise the workspace stays where it is, and follows a
// renewal.
//
// Only an open, entitled period wins, with one exception: while a period is held
// for its payment, the workspace stays on the closed one before it.
func (e Election) Winner() string {
	current := e.follow()
	var best *Candidate
	for i := range e.Open {
		c := &e.Open[i]
		if !e.live(*c) {
			continue
		}
		if c.ID == current && !e.contested() && !e.pinnedLive() {
			return current
		}
		if best == nil || e.beats(*c, *best) {
			best = c
		}
	}
	switch {
	case e.waiting(current) && (best == nil || !e.contested()):
		return current
	case best == nil:
		return ""
	default:
		return best.ID
	}
}

// assigned is the election in which the action's subscription wins, and the pin
// that takes: none where it wins by itself.
func (e Election) assigned() (Election, *SubscriptionKey) {
	row := e.Action.Row
	e.Action, e.Pinned = Action{Verb: VerbInsert, Row: row}, nil
	if e.Winner() != row.ID {
		key := row.Key()
		e.Pinned = &key
	}
	return e, e.Pinned
}

// Live counts the periods that could win.
func (e Election) Live() int {
	n := 0
	for _, c := range e.Open {
		if e.live(c) {
			n++
		}
	}
	return n
}

func (e Election) live(c Candidate) bool {
	return e.Policy.Entitled(c.Subscription, e.Now) && !e.Policy.withholds(c.Subscription)
}

func (e Election) isPinned(c Candidate) bool { return e.Pinned != nil && *e.Pinned == c.Key() }

func (e Election) pinnedLive() bool {
	for _, c := range e.Open {
		if e.isPinned(c) && e.live(c) {
			return true
		}
	}
	return false
}

func (e Election) beats(a, b Candidate) bool {
	if e.isPinned(a) != e.isPinned(b) {
		return e.isPinned(a)
	}
	if a.Rank != b.Rank {
		return a.Rank > b.Rank
	}
	// Not the row's id first: a renewal has a new one.
	return cmp.Or(a.began().Compare(b.began()), cmp.Compare(a.SourceID, b.SourceID), cmp.Compare(a.ID, b.ID)) > 0
}

// contested reports whether the action may change who wins.
func (e Election) contested() bool {
	switch e.Action.Verb {
	case VerbInsert:
		return true
	case VerbRoll:
		return e.Action.Row.PlanKey != e.Action.Closes.PlanKey
	case VerbAmend:
		return slices.ContainsFunc(e.Action.Changes, func(c FieldChange) bool {
			return c.Field == fieldPlanKey || c.Field == fieldStatus || c.Field == fieldPaymentState || c.Field == fieldDisputed
		})
	default:
		return false
	}
}

// follow is where the pointer goes without an election: from a row that was
// rolled to its successor, unless that is held.
func (e Election) follow() string {
	rolled := e.Action.Verb == VerbRoll && e.Action.Closes.ID == e.Active
	if rolled && !e.Policy.withholds(e.Action.Row) {
		return e.Action.Row.ID
	}
	return e.Active
}

// waiting reports whether the row is the one before a period that is held.
func (e Election) waiting(id string) bool {
	for _, c := range e.Open {
		if c.PreviousID != nil && *c.PreviousID == id && e.Policy.Held(c.Subscription, e.Now) {
			return true
		}
	}
	return false
}
