package stripetest

import (
	"math/rand/v2"
	"slices"
)

// The functions below are for EndpointOptions.Order, and for tests that fold events
// themselves. They leave what they are given as it is.

// Shuffled is the events in an order that no causality holds.
func Shuffled(events []Event, random *rand.Rand) []Event {
	out := slices.Clone(events)
	random.Shuffle(len(out), func(a, b int) { out[a], out[b] = out[b], out[a] })
	return out
}

// Delayed moves each event back by up to so many places.
func Delayed(events []Event, places int, random *rand.Rand) []Event {
	type late struct {
		event Event
		at    int
	}
	moved := make([]late, len(events))
	for at, event := range events {
		moved[at] = late{event, at + random.IntN(places+1)}
	}
	slices.SortStableFunc(moved, func(a, b late) int { return a.at - b.at })
	out := make([]Event, 0, len(events))
	for _, one := range moved {
		out = append(out, one.event)
	}
	return out
}

// Duplicated sends a share of the events, from 0 to 1, once more some time later.
func Duplicated(events []Event, share float64, random *rand.Rand) []Event {
	out := slices.Clone(events)
	for at, event := range events {
		if random.Float64() < share {
			place := at + 1 + random.IntN(len(out)-at)
			out = slices.Insert(out, place, event)
		}
	}
	return out
}

// Dropped leaves a share of the events out, from 0 to 1.
func Dropped(events []Event, share float64, random *rand.Rand) []Event {
	var out []Event
	for _, event := range events {
		if random.Float64() >= share {
			out = append(out, event)
		}
	}
	return out
}
