package enforcement

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

// termsCache keeps the terms made of a workspace's last plan reading. A slot
// holds one workspace and the next one that falls on it takes it over, so it is
// bounded and needs no clock.
type termsCache struct {
	seed  maphash.Seed
	slots [1 << 14]termsSlot
}

type termsSlot struct {
	mu        sync.Mutex
	workspace string
	readAt    time.Time
	exact     bool
	terms     *terms
}

func newTermsCache() *termsCache { return &termsCache{seed: maphash.MakeSeed()} }

func (c *termsCache) slot(workspace string) *termsSlot {
	return &c.slots[maphash.String(c.seed, workspace)%uint64(len(c.slots))]
}

// get finds the terms made of this very reading: the same workspace, revisions,
// period, limits and instant of the read.
func (c *termsCache) get(plan subscriptions.PlanInfo) (*terms, bool) {
	s := c.slot(plan.WorkspaceID)
	s.mu.Lock()
	defer s.mu.Unlock()
	same := s.terms != nil && s.workspace == plan.WorkspaceID && s.exact == plan.Exact &&
		s.readAt.Equal(plan.ReadAt) && s.terms.revision == plan.Revision &&
		s.terms.PlanRevision == plan.Snapshot.PlanRevision && s.terms.UsageEpoch == plan.UsageEpoch &&
		s.terms.PeriodEnd.Equal(plan.Period.End) && s.terms.Limits == plan.Snapshot.Limits
	return s.terms, same
}

func (c *termsCache) put(plan subscriptions.PlanInfo, t *terms) {
	s := c.slot(plan.WorkspaceID)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workspace, s.readAt, s.exact, s.terms = plan.WorkspaceID, plan.ReadAt, plan.Exact, t
}
