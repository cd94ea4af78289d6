package stripetest

import (
	"container/heap"
	"time"
)

// clock is the time of the account, or of a test clock, and what falls due on it.
type clock struct {
	id  string
	now time.Time
	due agenda
}

// task is something that may fall due: whether it still does is decided when it is run.
type task struct {
	at  time.Time
	seq int
	run func()
}

type agenda []task

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if !a[i].at.Equal(a[j].at) {
		return a[i].at.Before(a[j].at)
	}
	return a[i].seq < a[j].seq
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push is for the heap.
func (a *agenda) Push(x any) { *a = append(*a, x.(task)) } //nolint:errcheck // only at pushes

// Pop is for the heap.
func (a *agenda) Pop() any {
	old := *a
	last := old[len(old)-1]
	*a = old[:len(old)-1]
	return last
}

func (s *Stripe) at(c *clock, t time.Time, run func()) {
	s.tasks++
	heap.Push(&c.due, task{at: t, seq: s.tasks, run: run})
}

// Now is where the account's clock stands.
func (s *Stripe) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clocks[""].now
}

// Advance moves the account's clock on and runs what falls due on the way, each thing at
// its own second and in order. Objects on test clocks do not move.
func (s *Stripe) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clocks[""]
	s.advance(c, c.now.Add(d))
}

// AdvanceTo is Advance to a point in time; an earlier one than now does nothing.
func (s *Stripe) AdvanceTo(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(s.clocks[""], t)
}

func (s *Stripe) advance(c *clock, t time.Time) {
	t = t.UTC().Truncate(time.Second)
	for len(c.due) > 0 && !c.due[0].at.After(t) {
		next := heap.Pop(&c.due).(task) //nolint:errcheck // only tasks are in it
		if next.at.After(c.now) {
			c.now = next.at
		}
		next.run()
	}
	if t.After(c.now) {
		c.now = t
	}
}

// NextDue is when the next thing falls due on the account's clock, and false if nothing
// does. AdvanceTo(NextDue()) plays a scenario step by step. What is noted may turn out
// to be done already, so that a step can be without effect.
func (s *Stripe) NextDue() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clocks[""]
	if len(c.due) == 0 {
		return time.Time{}, false
	}
	return c.due[0].at, true
}

// CreateTestClock makes a test clock frozen at a time and returns its id. Customers made
// with it, and all that is theirs, live by it alone.
func (s *Stripe) CreateTestClock(frozen time.Time) string {
	s.enter()
	defer s.leave()
	id := s.ids.make("clock")
	s.clocks[id] = &clock{id: id, now: frozen.UTC().Truncate(time.Second)}
	return id
}

// AdvanceTestClock moves a test clock as AdvanceTo moves the account's. It fails for an
// unknown clock.
func (s *Stripe) AdvanceTestClock(id string, t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.clocks[id]
	if !ok || id == "" {
		return missing("test_helpers.test_clock", id)
	}
	s.advance(c, t)
	return nil
}
