package consumers_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
)

func TestARequestWhoseAnswersAreAlwaysLateIsRefusedWhenItsTimeIsUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var clock atomic.Int64
	j := &judge{admit: func(r enforcement.Request) enforcement.Result {
		clock.Add(int64(100 * time.Millisecond)) // is what asking takes
		return enforcement.Result{Decision: allowed(r)}
	}}
	r := w.start(j, func(o *consumers.Options) {
		start := time.Now()
		o.Now = func() time.Time { return start.Add(time.Duration(clock.Load())) }
		o.RebuildFence, o.UnavailableBudget = 50*time.Millisecond, 300*time.Millisecond
	})
	w.request("acme", "x")
	if got := w.decisions(1); got[0].Code != enforcement.CodeUnavailable {
		t.Errorf("decision is %d, want 9008", got[0].Code)
	}
	w.settled("requested")
	if s := w.counts(r); s.Unavailable() != 1 || s.Withdrawn() != 1 {
		t.Errorf("unavailable %d, withdrawn %d, want 1 of both", s.Unavailable(), s.Withdrawn())
	}
}

func TestARefusedRequestLeavesAServiceThatIsAwayInPeace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := time.Now()
	var clock atomic.Int64
	j := &judge{admit: func(enforcement.Request) enforcement.Result {
		return enforcement.Result{Err: enforcement.ErrUnavailable}
	}}
	r := w.start(j, func(o *consumers.Options) {
		o.Now = func() time.Time { return start.Add(time.Duration(clock.Load())) }
	})
	late := start.Add(-time.Second)
	w.publish(w.topology.Requested("acme"), requestBody(w, "acme", "x", &late))
	w.decisions(1)
	w.eventually("put off again and again", func() bool { return r.Stats().Deferred() >= 3 })
	if got := j.told(&j.withdrawn); len(got) != 0 {
		t.Errorf("Redis was told of %v in the pause after a failure", got)
	}
	clock.Store(int64(time.Minute))
	w.settled("requested")
	if n := w.count(schemas.StreamDecisions); n != 1 || r.Stats().Withdrawn() != 1 {
		t.Errorf("%d decisions, %d withdrawn, want one of both", n, r.Stats().Withdrawn())
	}
}
