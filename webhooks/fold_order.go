package webhooks

import (
	"cmp"
	"reflect"
	"slices"
)

// newest is a subscription as it was last shown. An end is final; else the later second
// counts, and within one second what follows from what.
func newest(sights []sight) subscriptionObject {
	slices.SortStableFunc(sights, func(a, b sight) int { return a.created.Compare(b.created) })
	for i := len(sights) - 1; i >= 0; i-- {
		if sights[i].after.ended() {
			return sights[i].after
		}
	}
	var last *subscriptionObject
	for len(sights) > 0 {
		n := 1
		for n < len(sights) && sights[n].created.Equal(sights[0].created) {
			n++
		}
		after := chained(last, sights[:n])
		last, sights = &after, sights[n:]
	}
	return *last
}

// chained is where the events of one second end, which began with how the subscription
// was before it. Each next one is the one whose before is the present. One that says
// nothing of before confirms what others tell; if none does, it is the news itself.
func chained(present *subscriptionObject, second []sight) subscriptionObject {
	var links, news []sight
	for _, s := range second {
		switch {
		case s.kind == createdEvent:
			present = &s.after
		case s.before != nil:
			links = append(links, s)
		}
	}
	for _, s := range second {
		if s.before == nil && s.kind != createdEvent && !confirms(s, present, links) {
			news = append(news, s)
		}
	}
	for i, s := range news {
		if i == 0 || s.isAfter(*present) {
			present = &s.after
		}
	}
	if end, sure := endOf(present, links); sure {
		return end
	}
	for len(links) > 0 {
		i := nextOf(present, links)
		present = &links[i].after
		links = slices.Delete(slices.Clone(links), i, i+1)
	}
	return *present
}

// endOf is where a chain of links ends that may come by the same state several times: at
// the state that is come to once more often than it is left, or where it began if
// there is none. It is not clear if a link was lost.
func endOf(present *subscriptionObject, links []sight) (end subscriptionObject, sure bool) {
	var found []subscriptionObject
	for _, link := range links {
		surplus := 0
		for _, o := range links {
			if same(o.after, link.after) {
				surplus++
			}
			if same(*o.before, link.after) {
				surplus--
			}
		}
		known := slices.ContainsFunc(found, func(o subscriptionObject) bool { return same(o, link.after) })
		if surplus > 0 && !known {
			found = append(found, link.after)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], true
	case len(found) == 0 && present != nil:
		return *present, true
	default:
		return subscriptionObject{}, false
	}
}

// createdEvent is the first that there is of a subscription.
const createdEvent = "customer.subscription.created"

func confirms(s sight, present *subscriptionObject, links []sight) bool {
	return present != nil && same(s.after, *present) || slices.ContainsFunc(links, func(o sight) bool {
		return same(s.after, o.after) || same(s.after, *o.before)
	})
}

// nextOf chooses the link that comes next: the one that follows from the present, else
// one whose predecessor was lost, else any; of several the one that shows the earlier
// period.
func nextOf(present *subscriptionObject, links []sight) int {
	best, rank := 0, -1
	for i, s := range links {
		r := 0
		switch {
		case present != nil && same(*s.before, *present):
			r = 2
		case !slices.ContainsFunc(links, func(o sight) bool { return same(o.after, *s.before) }):
			r = 1
		}
		if r > rank || r == rank && links[best].isAfter(s.after) {
			best, rank = i, r
		}
	}
	return best
}

// isAfter reports whether an event shows a later period than the other object.
func (s sight) isAfter(o subscriptionObject) bool {
	mine, other := s.after.Items[0].Period, o.Items[0].Period
	return cmp.Or(mine.Start.Compare(other.Start), mine.End.Compare(other.End)) > 0
}

// same compares subscriptions as events of different versions show them.
func same(a, b subscriptionObject) bool {
	a.PausedBecause, b.PausedBecause = "", ""
	return reflect.DeepEqual(a, b)
}
