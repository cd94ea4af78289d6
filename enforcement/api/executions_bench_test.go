package api_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement/api"
)

// BenchmarkAdmit is the time of one admission at the door, with so many callers who ask
// again as soon as they are answered, spread over 50 workspaces. Without coalescing every
// question is a batch of its own.
func BenchmarkAdmit(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		for _, way := range []struct {
			name           string
			flights, batch int
		}{{"alone", 4096, 1}, {"flights=1", 1, 512}, {"flights=2", 2, 512}, {"flights=4", 4, 512}, {"flights=8", 8, 512}} {
			b.Run(fmt.Sprintf("callers=%d/%s", callers, way.name), func(b *testing.B) {
				h := newHouse(b, limits(nil, nil), func(o *api.ExecutionsOptions) { o.Flights, o.BatchSize = way.flights, way.batch })
				measureAdmissions(b, h, callers)
			})
		}
	}
}

func measureAdmissions(b *testing.B, h *house, callers int) {
	b.Helper()
	for n := range 50 {
		r := asking("first", "e")
		r.WorkspaceID = fmt.Sprintf("ws%d", n)
		if _, err := h.Admit(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
	var next atomic.Int64
	times := make([]time.Duration, b.N)
	var wait sync.WaitGroup
	b.ResetTimer()
	for range callers {
		wait.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				r := asking(fmt.Sprintf("x%d", n), fmt.Sprintf("e%d", n))
				r.WorkspaceID = fmt.Sprintf("ws%d", n%50)
				begun := time.Now()
				if _, err := h.Admit(b.Context(), r); err != nil {
					b.Error(err)
					return
				}
				times[n-1] = time.Since(begun)
			}
		})
	}
	wait.Wait()
	b.StopTimer()
	slices.Sort(times)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "admissions/s")
	b.ReportMetric(float64(times[b.N/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[b.N*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(h.Stats().Batched())/float64(h.Stats().Batches()), "questions/batch")
}
