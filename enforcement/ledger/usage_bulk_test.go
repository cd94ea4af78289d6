package ledger_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/subscriptions"
)

// The ledger is what a catalog's diff asks about executions.
var _ interface {
	UsageOf(ctx context.Context, counters []subscriptions.Counter) (map[subscriptions.Counter]int64, error)
	UsageIn(ctx context.Context, epoch string) (map[string]int64, error)
} = (*ledger.Store)(nil)

func TestUsageIsReadForManyCountersAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.decide(t, allow("w", "a", 1), allow("w", "b", 2), allow("v", "c", 7))
	counter := func(workspace, epoch string) subscriptions.Counter {
		return subscriptions.Counter{WorkspaceID: workspace, UsageEpoch: epoch}
	}
	// More than one question takes.
	asked := []subscriptions.Counter{counter("v", epoch)}
	for i := range 10_500 {
		asked = append(asked, counter(fmt.Sprintf("stranger%d", i), epoch))
	}
	asked = append(asked, counter("w", epoch), counter("w", "default.2026-12"), counter("w", epoch))
	got, err := b.UsageOf(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	want := map[subscriptions.Counter]int64{counter("w", epoch): b.used(t, "w")[0], counter("v", epoch): b.used(t, "v")[0]}
	if diff := cmp.Diff(want, got); diff != "" || want[counter("w", epoch)] != 2 {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	if none, err := b.UsageOf(t.Context(), nil); err != nil || len(none) != 0 {
		t.Errorf("usage of no counters is %v, %v", none, err)
	}
	in, err := b.UsageIn(t.Context(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int64{"w": 2, "v": want[counter("v", epoch)]}, in); diff != "" {
		t.Errorf("usage in the epoch (-want +got):\n%s", diff)
	}
	if none, err := b.UsageIn(t.Context(), "default.2026-12"); err != nil || len(none) != 0 {
		t.Errorf("usage in an epoch of nobody is %v, %v", none, err)
	}
}
