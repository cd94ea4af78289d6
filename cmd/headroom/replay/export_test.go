package replay

import "github.com/headroomhq/headroom/schemas"

// Feed is a feed without a stream.
type Feed struct{ *feed }

// NewFeed expects nothing yet.
func NewFeed() Feed {
	return Feed{&feed{expected: make(map[string]chan schemas.DecisionMade), moved: make(chan struct{})}}
}

// Expect is expect for the request event of that source and id.
func (f Feed) Expect(source, id string) <-chan schemas.DecisionMade {
	return f.expect(keyOf(source, id))
}

// Hand is hand.
func (f Feed) Hand(d schemas.DecisionMade) bool { return f.hand(d) }
