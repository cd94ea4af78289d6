package consumers_test

import (
	"fmt"
	"testing"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
)

func TestADrainLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 2000
	for i := range n {
		w.request("acme", fmt.Sprintf("x%04d", i))
	}
	underWay := make(chan struct{}, n)
	j := &judge{admit: func(r enforcement.Request) enforcement.Result {
		underWay <- struct{}{}
		return enforcement.Result{Decision: allowed(r)}
	}}
	small := func(o *consumers.Options) { o.BatchSize = 16 }

	first := w.start(j, small)
	for range 50 {
		<-underWay
	}
	s := w.counts(first)
	decided := w.count(schemas.StreamDecisions)
	if decided == 0 || decided == n {
		t.Fatalf("%d of %d decided at the drain, so it shows nothing", decided, n)
	}
	if s.Acknowledged() != int64(decided) || s.Allowed() != int64(decided) {
		t.Errorf("acknowledged %d, published %d, stored %d, want the same", s.Acknowledged(), s.Allowed(), decided)
	}
	consumer, err := w.js.Consumer(t.Context(), w.topology.Stream(schemas.StreamExecutions), "requested")
	if err != nil {
		t.Fatal(err)
	}
	// The server works off acknowledgements after it has received them; and what it
	// had on its way when the lanes unsubscribed comes again later.
	w.eventually(fmt.Sprintf("%d messages are left, neither more nor fewer", n-decided), func() bool {
		info, err := consumer.Info(t.Context())
		return err == nil && uint64(info.NumAckPending)+info.NumPending == uint64(n-decided)
	})

	second := w.start(j, small)
	seen := make(map[string]int)
	for _, d := range w.decisions(n) {
		seen[d.ExecutionID]++
	}
	w.settled("requested")
	if s := w.counts(second); s.Repeated() != 0 {
		t.Errorf("%d decisions were published again after the drain", s.Repeated())
	}
	if len(seen) != n || w.count(schemas.StreamDecisions) != n {
		t.Errorf("%d executions decided in %d decisions, want %d in as many", len(seen), w.count(schemas.StreamDecisions), n)
	}
}

func TestBatchesFormByThemselves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 500
	for i := range n {
		w.request("acme", fmt.Sprintf("x%04d", i))
	}
	j := &judge{}
	w.start(j, func(o *consumers.Options) { o.BatchSize, o.Workers = 64, 1 })
	w.decisions(n)
	w.settled("requested")
	w.request("acme", "alone") // is not kept waiting for company
	w.decisions(n + 1)
	j.mu.Lock()
	defer j.mu.Unlock()
	largest, last := 0, j.batches[len(j.batches)-1]
	for _, size := range j.batches {
		largest = max(largest, size)
	}
	if largest < 2 || largest > 64 || last != 1 {
		t.Errorf("the largest batch has %d and the last %d messages, want 2 to 64 and 1", largest, last)
	}
}
