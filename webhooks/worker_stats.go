package webhooks

import (
	"log/slog"
	"sync"
	"sync/atomic"
)

// WorkerStats are what a Worker has done so far. Those from Held on are each a way of
// silently going wrong: they are to stay where they are.
type WorkerStats struct {
	// Lookups are those that were settled, Fetched those of them that asked the API, and
	// Folded those that put payloads together.
	Lookups, Fetched, Folded int64
	// Retries are failures that are tried again, of whatever kind.
	Retries int64
	// Held are failures that wait for a person: the key is refused.
	Held int64
	// Unmapped, Parked and Dead are look-ups that ended so.
	Unmapped, Parked, Dead int64
	// Unresolved are look-ups of a subscription none of whose prices is in the catalog.
	Unresolved int64
	// API is what the API was asked, zero without a key.
	API APIStats
}

type workerTally struct {
	lookups, fetched, folded, retries, held, unmapped, parked, dead, unresolved atomic.Int64
}

// Stats are what was done so far.
func (w *Worker) Stats() WorkerStats {
	t := &w.tally
	s := WorkerStats{
		Lookups: t.lookups.Load(), Fetched: t.fetched.Load(), Folded: t.folded.Load(), Retries: t.retries.Load(),
		Held: t.held.Load(), Unmapped: t.unmapped.Load(), Parked: t.parked.Load(), Dead: t.dead.Load(),
		Unresolved: t.unresolved.Load(),
	}
	if w.api != nil {
		s.API = w.api.Stats()
	}
	return s
}

func (t *workerTally) count(state string) {
	t.lookups.Add(1)
	switch state {
	case StateUnmapped:
		t.unmapped.Add(1)
	case StateParked:
		t.parked.Add(1)
	case StateDead:
		t.dead.Add(1)
	}
}

// versions tells once of each version that the decoder was not written for.
type versions struct {
	log  *slog.Logger
	told sync.Map
}

func (v *versions) met(version string) {
	if version == "" || knownVersion(version) {
		return
	}
	if _, told := v.told.LoadOrStore(version, true); !told {
		v.log.Warn("stripe sends an API version that this program was not written for: its objects are read as far as they can be",
			"api_version", version)
	}
}
