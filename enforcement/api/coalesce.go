package api

import (
	"context"
	"runtime/debug"
	"sync"
)

// coalescer makes batches of what many callers ask at one moment. While as many
// flights as are allowed are under way, what arrives waits; when one ends, all that
// wait go together. No timer is involved: a caller who is alone goes at once.
//
// A flight belongs to nobody, so a caller who hangs up takes nothing from the others.
type coalescer[Q, A any] struct {
	// fly answers a batch: it sets answer or err of each, and ends within a time that
	// is its own to bound.
	fly func(batch []*pending[Q, A])
	// panicked is told of a flight that panicked.
	panicked func(value any, stack []byte)
	flights  int
	batch    int

	mu      sync.Mutex
	waiting []*pending[Q, A]
	flying  int
	closed  bool
	idle    sync.Cond // flying has become 0
}

// pending is one caller's question in a batch.
type pending[Q, A any] struct {
	question Q
	answer   A
	err      error

	gone <-chan struct{} // closed when the caller has hung up
	done chan struct{}
}

func (c *pending[Q, A]) hungUp() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

func newCoalescer[Q, A any](o ExecutionsOptions, fly func([]*pending[Q, A])) *coalescer[Q, A] {
	c := &coalescer[Q, A]{fly: fly, flights: o.Flights, batch: o.BatchSize}
	c.panicked = func(value any, stack []byte) {
		o.Log.Error("answering a batch panicked, its callers ask again", "panic", value, "stack", string(stack))
	}
	c.idle.L = &c.mu
	return c
}

// ask waits for the answer, or until ctx ends. A question whose caller is gone before its
// flight begins is not asked; one that is under way is, and its answer is nobody's.
func (c *coalescer[Q, A]) ask(ctx context.Context, question Q) (A, error) {
	var none A
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	mine := &pending[Q, A]{question: question, gone: ctx.Done(), done: make(chan struct{})}
	if err := c.enter(mine); err != nil {
		return none, err
	}
	select {
	case <-mine.done:
		return mine.answer, mine.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

func (c *coalescer[Q, A]) enter(mine *pending[Q, A]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errDraining
	}
	c.waiting = append(c.waiting, mine)
	if c.flying < c.flights {
		c.flying++
		go c.run()
	}
	return nil
}

// run makes flights until nobody waits.
func (c *coalescer[Q, A]) run() {
	for batch := c.take(); len(batch) > 0; batch = c.take() {
		c.one(batch)
	}
}

// take is the next batch; without one the flights of this goroutine are over.
func (c *coalescer[Q, A]) take() []*pending[Q, A] {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch := make([]*pending[Q, A], 0, min(c.batch, len(c.waiting)))
	for len(c.waiting) > 0 && len(batch) < c.batch {
		next := c.waiting[0]
		c.waiting[0] = nil
		c.waiting = c.waiting[1:]
		if !next.hungUp() {
			batch = append(batch, next)
		}
	}
	if len(batch) == 0 {
		c.flying--
		if c.flying == 0 {
			c.idle.Broadcast()
		}
	}
	return batch
}

// one is one flight. A panic fails its batch and nothing else.
func (c *coalescer[Q, A]) one(batch []*pending[Q, A]) {
	defer func() {
		if value := recover(); value != nil {
			c.panicked(value, debug.Stack())
			for _, each := range batch {
				each.err = errPanicked
			}
		}
		for _, each := range batch {
			close(each.done)
		}
	}()
	c.fly(batch)
}

// close refuses what comes from now on and waits until all that came before is answered.
func (c *coalescer[Q, A]) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for c.flying > 0 {
		c.idle.Wait()
	}
}
