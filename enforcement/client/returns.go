package client

import (
	"context"
	"sync"

	"github.com/headroomhq/headroom/schemas"
)

// mostReturns bounds what is kept while nothing can be sent.
const mostReturns = 10_000

// returns gives back, in the background, what executions may have been granted
// that nobody will run (see Execution.Once).
type returns struct {
	mu      sync.Mutex
	waiting []giveBack
	more    chan struct{}
}

// giveBack is an execution that was asked for in ctx, whose values go on.
type giveBack struct {
	ctx context.Context
	Completion
}

func newReturns() *returns { return &returns{more: make(chan struct{}, 1)} }

func (r *returns) add(ctx context.Context, c *Client, e Execution) {
	back := giveBack{context.WithoutCancel(ctx), Completion{
		WorkspaceID: e.WorkspaceID, ExecutionID: e.ID, Outcome: schemas.OutcomeNotStarted,
	}}
	r.mu.Lock()
	full := len(r.waiting) >= mostReturns
	if !full {
		r.waiting = append(r.waiting, back)
	}
	r.mu.Unlock()
	if full {
		c.log.Warn("execution not given back, too many wait for it; its lease ends by itself", "workspace", e.WorkspaceID, "execution", e.ID)
		return
	}
	select {
	case r.more <- struct{}{}:
	default:
	}
}

func (r *returns) take() []giveBack {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.waiting
	r.waiting = nil
	return all
}

// work sends what is added until the client is closed.
func (r *returns) work(c *Client) func() {
	return func() {
		for {
			select {
			case <-c.done:
				return
			case <-r.more:
			}
			for _, each := range r.take() {
				if err := c.Complete(each.ctx, each.Completion); err != nil {
					c.log.Warn("execution not given back, its lease ends by itself",
						"workspace", each.WorkspaceID, "execution", each.ExecutionID, "error", err)
				}
			}
		}
	}
}
