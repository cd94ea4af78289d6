package main

import (
	"testing"
	"time"

	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// apart is two instances, of which one is cut off from NATS and has workspace ws
// on plan pro in its cache, while the workspace was put on plan free.
type apart struct {
	*estate
	near, far *instance
	cutter    *cutter
}

func newApart(t *testing.T, set ...func(*subscriptions.Assignment)) *apart {
	t.Helper()
	e := newEstate(t)
	a := &apart{estate: e, cutter: newCutter(t, schematest.NATSURL(t))}
	a.near = e.instance("near", schematest.NATSURL(t))
	a.far = e.instance("far", a.cutter.through(t, schematest.NATSURL(t)))
	e.assign("ws", "pro", set...)
	a.near.decides("ws", "pro")
	a.far.decides("ws", "pro")
	a.cutter.cut()
	e.eventually("the far instance is cut off", func() bool { return !a.far.js.Conn().IsConnected() })
	a.far.decides("ws", "pro")
	e.assign("ws", "free", func(a *subscriptions.Assignment) { a.Interval = "" })
	e.eventually("the near instance hears of it", func() bool { return a.near.cached("ws").Snapshot.PlanKey == "free" })
	if plan := a.far.cached("ws").Snapshot.PlanKey; plan != "pro" {
		t.Fatalf("the far instance knows plan %s: it was not cut off", plan)
	}
	return a
}

func TestNothingIsAdmittedOnAnOldPlanAfterTheReconnect(t *testing.T) {
	t.Parallel()
	a := newApart(t)
	a.far.decides("ws", "pro") // nobody told Redis of another plan yet
	expiries := a.far.plans.Stats().Expiries
	a.cutter.mend()
	a.eventually("the far instance is back", func() bool { return a.far.plans.Stats().Expiries > expiries })
	for range 20 {
		a.far.decides("ws", "free")
	}
}

func TestNothingIsAdmittedOnAnOldPlanAfterAnotherDecidedOnTheNewOne(t *testing.T) {
	t.Parallel()
	a := newApart(t)
	a.near.decides("ws", "free")
	for range 20 {
		a.far.decides("ws", "free")
	}
	if a.far.js.Conn().IsConnected() {
		t.Error("the far instance was connected: the fence alone was to be seen")
	}
}

func TestNothingIsAdmittedOnAnOldPlanAfterThePeriod(t *testing.T) {
	t.Parallel()
	a := newApart(t, func(a *subscriptions.Assignment) {
		start := time.Now().Add(-54 * time.Second)
		a.Interval, a.Start = "1m", &start
	})
	end := a.far.cached("ws").Period.End
	over := time.NewTimer(time.Until(end))
	defer over.Stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	onOld := 0
	for isOver := false; !isOver; {
		select {
		case <-over.C:
			isOver = true
		case <-again.C:
			got := a.far.ask("ws")
			if got.Err == nil && got.Decision.PlanKey == "pro" {
				onOld++
				if at := got.Decision.DecidedAt; !at.Before(end) {
					t.Fatalf("decided on plan pro at %s, its period ended %s", at, end)
				}
			}
		}
	}
	if onOld == 0 {
		t.Error("the far instance never decided on the old plan")
	}
	// The clocks of Redis and Postgres may differ by a moment, in which nothing is decided.
	decided := 0
	a.eventually("the far instance decides in the new period", func() bool {
		if got := a.far.ask("ws"); got.Err == nil {
			decided++
			if got.Decision.PlanKey != "free" {
				t.Errorf("decided on plan %s after the period", got.Decision.PlanKey)
			}
		}
		return decided == 20
	})
	if a.far.js.Conn().IsConnected() {
		t.Error("the far instance was connected: the end of the period alone was to be seen")
	}
}
