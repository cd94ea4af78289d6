package ledger_test

import (
	"fmt"
	"testing"

	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
)

// BenchmarkFold is the folding of 1,000 allows, of workspaces that each have a
// subscription and stay below every threshold, as nearly all do.
func BenchmarkFold(b *testing.B) {
	for _, workspaces := range []int{1, 50, 1000} {
		b.Run(fmt.Sprintf("workspaces=%d", workspaces), func(b *testing.B) { benchmarkFold(b, workspaces) })
	}
}

func benchmarkFold(b *testing.B, workspaces int) {
	b.Helper()
	book := open(b)
	store := book.catalog(b, 1_000_000_000)
	ids := make([]string, workspaces)
	for i := range ids {
		ids[i] = assign(b, store, fmt.Sprintf("ws-%d", i), 1_000_000_000).ID
	}
	execution := 0
	for b.Loop() {
		ds := make([]ledger.Decision, 1000)
		for i := range ds {
			execution++
			d := allow(fmt.Sprintf("ws-%d", i%workspaces), fmt.Sprintf("x-%d", execution), int64(execution))
			d.SubscriptionID = &ids[i%workspaces]
			d.Limits.MaxExecutions = schemas.LimitOf(1_000_000_000)
			ds[i] = d
		}
		book.decide(b, ds...)
	}
	b.ReportMetric(float64(b.N*1000)/b.Elapsed().Seconds(), "decisions/s")
}
