package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// errQueue is a wait in this process that took too long.
var errQueue = errors.New("others in this process held it")

// keyed serialises the goroutines of this process by key. Who waits holds nothing but
// memory, and hears of the end of its context. First come first served is not promised.
type keyed struct {
	mu    sync.Mutex
	turns map[string]*turn
}

// turn is a key that somebody holds or waits for.
type turn struct {
	// slot has one place: who fills it holds the key.
	slot  chan struct{}
	users int
}

// acquire waits for the key, for at most patience. The caller owes a call of release.
func (k *keyed) acquire(ctx context.Context, key string, patience time.Duration) (release func(), err error) {
	t := k.join(key)
	leave := func() { k.leave(key, t) }
	select {
	case t.slot <- struct{}{}:
	default:
		deadline := time.NewTimer(patience)
		defer deadline.Stop()
		select {
		case t.slot <- struct{}{}:
		case <-deadline.C:
			leave()
			return nil, errQueue
		case <-ctx.Done():
			leave()
			return nil, ended(ctx)
		}
	}
	if ctx.Err() != nil {
		<-t.slot
		leave()
		return nil, ended(ctx)
	}
	return func() {
		<-t.slot
		leave()
	}, nil
}

func (k *keyed) join(key string) *turn {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.turns == nil {
		k.turns = map[string]*turn{}
	}
	t := k.turns[key]
	if t == nil {
		t = &turn{slot: make(chan struct{}, 1)}
		k.turns[key] = t
	}
	t.users++
	return t
}

func (k *keyed) leave(key string, t *turn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(k.turns, key)
	}
}

// ended is the error of a context that has ended, with the cause where it says more.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
