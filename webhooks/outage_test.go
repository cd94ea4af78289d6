package webhooks_test

import (
	"testing"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// An endpoint that is disabled gets none of the events of that time, ever.
func TestAnOutageLongerThanDeliveriesAreTriedIsSweptUp(t *testing.T) {
	t.Parallel()
	begun := time.Now().AddDate(0, 0, -20)
	o := newOfficeAt(t, begun)
	o.work()
	renewed, canceled := o.subscriber("ws_renewed"), o.subscriber("ws_canceled")
	o.flush()
	early := webhooks.NewSweep(webhooks.SweepOptions{
		Ledger: o.ledger, API: o.api, Young: -1, Now: func() time.Time { return begun.Add(time.Minute) },
	})
	if _, err := early.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.stripe.Advance(12 * 24 * time.Hour)
	if _, err := o.stripe.Update(renewed.ID, stripetest.UpdateParams{Price: o.big.ID, AnchorNow: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.stripe.Cancel(canceled.ID); err != nil {
		t.Fatal(err)
	}
	late := o.subscriber("ws_late")
	o.endpoint.Forget()
	o.stripe.AdvanceTo(time.Now())
	if report := o.sweep(); report.Repairs() == 0 || len(report.Lost) != 0 {
		t.Errorf("the sweep came to %+v", report)
	}
	o.idle()
	rows := o.rows()
	if r := rows[renewed.ID]; r.Plan != "big" || !r.Start.After(begun.Add(24*time.Hour)) || r.Closed {
		t.Errorf("the period that began meanwhile is %+v", r)
	}
	if !rows[canceled.ID].Closed || rows[late.ID].Workspace != "ws_late" {
		t.Errorf("rows are %+v", rows)
	}
	if report := o.sync(); report.Repairs() != 0 {
		t.Errorf("the sweep left to the comparison: %v", report.Repaired)
	}
}

// What comes late is of the time at which it happened, and not of that at which it came.
func TestADelayedEventIsOfItsOwnTime(t *testing.T) {
	t.Parallel()
	for name, keyless := range map[string]bool{"fetched": false, "folded": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sh := newSite(t, subscriptions.Policy{}).open(shopOptions{keyless: keyless})
			before := time.Now()
			sub := plain(sh)
			sh.deliver()
			sh.pass(10 * aDay)
			ended, err := sh.Cancel(sub.ID)
			sh.ok(err)
			sh.deliver()
			r := sh.last(sub.ID)
			if !r.Start.Equal(sub.Created) || r.Closed == nil || !r.Closed.Equal(ended.EndedAt) {
				t.Errorf("the row is %+v, of a subscription from %s to %s", r, sub.Created, ended.EndedAt)
			}
			events, err := sh.ledger.Events(t.Context(), webhooks.EventFilter{State: webhooks.StateDone})
			sh.ok(err)
			for _, e := range events {
				if e.Created == nil || e.Created.After(ended.EndedAt) || e.ReceivedAt.Before(before.Add(-time.Second)) {
					t.Errorf("%s was made %v and received %s", e.Type, e.Created, e.ReceivedAt)
				}
			}
			if len(events) == 0 {
				t.Error("no event is done")
			}
		})
	}
}
