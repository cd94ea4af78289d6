package consumers_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// relayed runs a relay until the test ends.
func (w *whole) relayed() {
	w.Helper()
	r, err := consumers.NewRelay(consumers.RelayOptions{
		NATS: w.nats, JetStream: w.js, Topology: w.topology, Outbox: subscriptions.NewOutbox(w.pool),
	})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("relay ended with an error: %v", err)
		}
	})
}

// thresholds waits for so many and tells them. How much is used depends on which of
// several decisions that were taken at once is stored first.
func (w *whole) thresholds(n int) []string {
	w.Helper()
	var all []string
	for _, m := range w.await(schemas.StreamUsage, n) {
		event, err := schemas.Decode[schemas.UsageThresholdReached](m.Subject, m.Data)
		if err != nil {
			w.Fatal(err)
		}
		d := event.Data
		if 100*d.Used < int64(d.Percent)*d.LimitValue {
			w.Errorf("%+v is told of too early", d)
		}
		all = append(all, fmt.Sprintf("%s %s %d%% of %d", d.WorkspaceID, d.Limit, d.Percent, d.LimitValue))
	}
	return all
}

func TestSubscribersHearOfThresholdsOnce(t *testing.T) {
	t.Parallel()
	w := newWhole(t, subscriptions.StoreOptions{})
	w.relayed()
	for range 2 {
		w.start(w.enforcer, w.follow)
	}
	for i := range 60 {
		w.request("limited", fmt.Sprintf("x%02d", i))
	}
	w.decisions(60)
	w.folded()
	want := []string{"limited max_executions 80% of 40", "limited max_executions 100% of 40"}
	if diff := cmp.Diff(want, w.thresholds(2)); diff != "" {
		t.Errorf("thresholds (-want +got):\n%s", diff)
	}
	row := w.active("limited").Subscription
	last := w.stored(schemas.StreamUsage)[1]
	event, err := schemas.Decode[schemas.UsageThresholdReached](last.Subject, last.Data)
	if err != nil {
		t.Fatal(err)
	}
	if p := event.Data.Period; !p.Start.Equal(row.PeriodStart) || !p.End.Equal(row.PeriodEnd) {
		t.Errorf("period %+v, want that of the subscription: %s to %s", p, row.PeriodStart, row.PeriodEnd)
	}
}

func TestSubscribersHearThatADowngradeIsOverTheLimitWithoutTraffic(t *testing.T) {
	t.Parallel()
	w := newWhole(t, subscriptions.StoreOptions{})
	if _, err := w.subscriptions.Assign(t.Context(), subscriptions.Assignment{WorkspaceID: "shrinking", PlanKey: "ample"}); err != nil {
		t.Fatal(err)
	}
	w.relayed()
	w.start(w.enforcer, w.follow)
	w.run("shrinking", 45)
	w.folded()
	if _, err := w.subscriptions.Assign(t.Context(), subscriptions.Assignment{WorkspaceID: "shrinking", PlanKey: "quota"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"shrinking max_executions 80% of 40", "shrinking max_executions 100% of 40"}
	if diff := cmp.Diff(want, w.thresholds(2)); diff != "" {
		t.Errorf("thresholds (-want +got):\n%s", diff)
	}
}
