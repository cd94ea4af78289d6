package guardtest

import (
	"context"
	"sync"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/schemas"
)

// plan is a provider with one limit, which can be changed, and which tells when it is asked.
type plan struct {
	mu         sync.Mutex
	resolution guard.Resolution
	asked      chan struct{}
}

func newPlan() *plan {
	return &plan{
		resolution: guard.Resolution{Kind: guard.KindLimit, Limit: schemas.LimitOf(1 << 40), PlanKey: "pro", Source: guard.SourcePlan},
		asked:      make(chan struct{}, 10_000),
	}
}

// Resolve is that of guard.Provider.
func (p *plan) Resolve(context.Context, string, string) (guard.Resolution, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.asked <- struct{}{}:
	default:
	}
	return p.resolution, nil
}

func (p *plan) set(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resolution.Limit = schemas.LimitOf(n)
}

// drain forgets who asked so far.
func (p *plan) drain() {
	for {
		select {
		case <-p.asked:
		default:
			return
		}
	}
}
