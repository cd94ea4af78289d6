package schematest

import (
	"context"
	"sync"
	"testing"
	"time"
)

// patience bounds whatever a test waits for here: a start, a cleanup.
const patience = time.Minute

// perTest remembers what each running test was given.
type perTest[T any] struct {
	mu    sync.Mutex
	given map[testing.TB]T
}

// of returns what the test was given before, else what create gives it now. It is
// forgotten when the test has cleaned up what create registered.
func (p *perTest[T]) of(t testing.TB, create func(testing.TB) T) T {
	t.Helper()
	p.mu.Lock()
	given, ok := p.given[t]
	p.mu.Unlock()
	if ok {
		return given
	}
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.given, t)
	})
	given = create(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.given == nil {
		p.given = map[testing.TB]T{}
	}
	p.given[t] = given
	return given
}

// bounded is a context that outlives the test's own, for its start and its cleanups.
func bounded(t testing.TB) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(context.WithoutCancel(t.Context()), patience)
}
