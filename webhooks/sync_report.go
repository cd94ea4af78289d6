package webhooks

import (
	"maps"
	"sync"
	"sync/atomic"
)

// What a comparison repaired, by cause.
const (
	// RepairMissing is a subscription that was never heard of.
	RepairMissing = "missing_subscription"
	// RepairChanged is one whose rows were not as Stripe has it.
	RepairChanged = "changed_state"
	// RepairOverdue is one whose period was over without news.
	RepairOverdue = "overdue_period"
)

// SyncReport is what one comparison came to.
type SyncReport struct {
	// Listed are the subscriptions that Stripe lists, Compared those of them that were
	// as the rows say, and Asked the look-ups that were asked for.
	Listed   int `json:"listed"`
	Compared int `json:"compared"`
	Asked    int `json:"asked"`
	// Imported are the subscriptions that came by the first comparison that reached its
	// end, Repaired, by cause, those of a later one.
	Imported int            `json:"imported"`
	Repaired map[string]int `json:"repaired"`
	// Late are look-ups that were not over when the comparison was: they are tried again
	// by whatever process runs a Worker.
	Late int `json:"late"`
}

func newSyncReport() SyncReport { return SyncReport{Repaired: map[string]int{}} }

// Repairs is how many subscriptions were repaired.
func (r SyncReport) Repairs() int {
	n := 0
	for _, count := range r.Repaired {
		n += count
	}
	return n
}

// SyncProgress is how far a comparison is.
type SyncProgress struct {
	// Listed are the subscriptions seen so far, Expected how many are known beforehand:
	// at a first import none.
	Listed, Expected int
	// Asked are the look-ups asked for so far. Waiting are those of the last that are not
	// over, and LastError why.
	Asked, Waiting int
	LastError      string
}

// SyncStats are what Run has done so far.
type SyncStats struct {
	// Repairs are subscriptions that were not as Stripe has them, by cause: none is the
	// proof that nothing was missed. Those of a first import are not among them.
	Repairs map[string]int64
	// Failed are comparisons that ended with an error; they go on later.
	Failed int64
}

type syncTally struct {
	mu      sync.Mutex
	repairs map[string]int64
	failed  atomic.Int64
}

// Stats are what was done so far.
func (s *Sync) Stats() SyncStats {
	s.tally.mu.Lock()
	defer s.tally.mu.Unlock()
	return SyncStats{Repairs: maps.Clone(s.tally.repairs), Failed: s.tally.failed.Load()}
}

func (t *syncTally) repaired(cause string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.repairs == nil {
		t.repairs = map[string]int64{}
	}
	t.repairs[cause]++
}
