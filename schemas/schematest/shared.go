package schematest

import (
	"context"
	"sync"
)

// service is what can be stopped.
type service interface {
	Stop(ctx context.Context) error
}

// shared is a service that the tests of a process have in common. It starts at most
// once: a start that failed fails every test that asks, with the same error.
type shared[S service] struct {
	mu      sync.Mutex
	tried   bool
	running S
	err     error
}

func (s *shared[S]) get(start func() (S, error)) (S, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.tried {
		s.tried = true
		s.running, s.err = start()
	}
	return s.running, s.err
}

func (s *shared[S]) stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.tried || s.err != nil {
		return nil
	}
	return s.running.Stop(ctx)
}
