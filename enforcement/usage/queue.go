package usage

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// mostTogether bounds how many changes share a transaction.
	mostTogether = 256
	// sharedPatience bounds a transaction that serves several callers, none of whose
	// contexts may end it for the others.
	sharedPatience = 10 * time.Second
)

// queueKey names a counter's row well enough: a workspace has one running epoch.
type queueKey struct{ workspace, feature string }

// queues hold those who wait for a row, which serves one transaction at a time anyway.
// Who comes first goes at once; who comes while that transaction is under way shares the
// next one.
type queues struct {
	mu   sync.Mutex
	open map[queueKey]*queue
}

type queue struct{ waiting []*ticket }

// ticket is a change that waits for its answer. The fields below done are written before
// it is closed and read after.
type ticket struct {
	once   Once
	change Change
	done   chan struct{}

	balance Balance
	err     error
}

// wait returns the ticket's answer. A caller that goes while nobody has taken its ticket
// takes it back; after that the change may be counted, and the error says so.
func (c *Counters) wait(ctx context.Context, t *ticket) (Balance, error) {
	c.enter(ctx, t)
	select {
	case <-t.done:
		return t.balance, t.err
	case <-ctx.Done():
	}
	if c.queues.takeBack(t) {
		return Balance{}, fmt.Errorf("%w: nothing was counted: %w", ErrUnavailable, ctx.Err())
	}
	select {
	case <-t.done:
		return t.balance, t.err
	default:
		return Balance{}, fmt.Errorf("count %s of workspace %s: it may be counted, which the same key will tell: %w",
			t.change.Feature, t.change.WorkspaceID, ctx.Err())
	}
}

// enter queues a ticket, and lets somebody serve the queue if nobody does.
func (c *Counters) enter(ctx context.Context, t *ticket) {
	key := queueKey{t.change.WorkspaceID, t.change.Feature}
	c.queues.mu.Lock()
	defer c.queues.mu.Unlock()
	if q := c.queues.open[key]; q != nil {
		q.waiting = append(q.waiting, t)
		return
	}
	c.queues.open[key] = &queue{waiting: []*ticket{t}}
	go c.drain(context.WithoutCancel(ctx), key)
}

// drain serves a queue until it is empty.
func (c *Counters) drain(ctx context.Context, key queueKey) {
	for {
		some := c.queues.take(key)
		if len(some) == 0 {
			return
		}
		c.serve(ctx, some)
	}
}

// take is who is next; the queue is closed when there is nobody.
func (q *queues) take(key queueKey) []*ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	open := q.open[key]
	n := min(len(open.waiting), mostTogether)
	if n == 0 {
		delete(q.open, key)
		return nil
	}
	some := open.waiting[:n:n]
	open.waiting = open.waiting[n:]
	return some
}

func (q *queues) takeBack(t *ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	open := q.open[queueKey{t.change.WorkspaceID, t.change.Feature}]
	if open == nil {
		return false
	}
	for i, w := range open.waiting {
		if w == t {
			open.waiting = append(open.waiting[:i:i], open.waiting[i+1:]...)
			return true
		}
	}
	return false
}

func (c *Counters) serve(ctx context.Context, tickets []*ticket) {
	ctx, cancel := context.WithTimeout(ctx, sharedPatience)
	defer cancel()
	err := c.answer(ctx, tickets)
	for _, t := range tickets {
		if err != nil {
			t.balance, t.err = Balance{}, err
		}
		close(t.done)
	}
}
