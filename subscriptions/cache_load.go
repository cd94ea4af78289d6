package subscriptions

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// loadAttempts bounds how often one load reads again because of invalidations
// that arrived meanwhile.
const loadAttempts = 4

// loading is a load under way. Its fields but floor and dropped are written
// before done is closed and read after; those two are under the shard's lock.
type loading struct {
	at   time.Time
	done chan struct{}
	info PlanInfo
	err  error
	// floor is the highest revision announced since the load began.
	floor int64
	// dropped is set by an invalidation without a revision, and cleared when
	// the reading begins again.
	dropped bool
}

func (l *loading) invalidate(revision int64) {
	if revision <= 0 {
		l.dropped = true
	}
	l.floor = max(l.floor, revision)
}

// answers reports whether the result of a load that another caller began holds
// for this caller's instant too.
func (l *loading) answers(at time.Time) bool {
	if l.err != nil {
		return !errors.Is(l.err, ErrPeriodNotStarted) || at.Equal(l.at)
	}
	return l.info.Period.Contains(at)
}

// await begins a load or joins the one under way.
func (c *Cache) await(ctx context.Context, workspace string, at time.Time) (PlanInfo, error) {
	for {
		l, own, hit := c.join(ctx, workspace, at)
		if hit != nil {
			return hit.info, nil
		}
		select {
		case <-l.done:
		case <-ctx.Done():
			return PlanInfo{}, fmt.Errorf("wait for plan of workspace %s: %w", workspace, ctx.Err())
		}
		if own || l.answers(at) {
			return l.info, l.err
		}
	}
}

// join returns the load to wait for, and whether this caller began it, or the
// value that another load has stored in the meantime.
func (c *Cache) join(ctx context.Context, workspace string, at time.Time) (l *loading, own bool, hit *cached) {
	s := c.shard(workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[workspace]; e != nil && e.serves(at, c.elapsed()) {
		return nil, false, e
	}
	if l = s.loads[workspace]; l != nil {
		return l, false, nil
	}
	l = &loading{at: at, done: make(chan struct{}), err: fmt.Errorf("load plan of workspace %s: the loader did not return", workspace)}
	s.loads[workspace] = l
	go c.run(context.WithoutCancel(ctx), workspace, l)
	return l, true, nil
}

// run reads until no invalidation has overtaken the reading, and wakes those
// who wait, whatever happens in the loader.
func (c *Cache) run(ctx context.Context, workspace string, l *loading) {
	s := c.shard(workspace)
	defer func() {
		s.mu.Lock()
		s.endLocked(workspace, l)
		s.mu.Unlock()
		close(l.done)
	}()
	for range loadAttempts {
		if c.attempt(ctx, workspace, l) {
			return
		}
	}
	l.info, l.err = PlanInfo{}, fmt.Errorf("load plan of workspace %s: %w", workspace, ErrStalePlan)
}

// attempt reads once and reports whether that settles the load.
func (c *Cache) attempt(ctx context.Context, workspace string, l *loading) bool {
	ctx, cancel := context.WithTimeout(ctx, c.options.LoadTimeout)
	defer cancel()
	s := c.shard(workspace)
	s.mu.Lock()
	l.dropped = false
	s.mu.Unlock()

	began := c.elapsed()
	info, err := c.load(ctx, workspace, l.at)
	if err == nil && !info.Period.Contains(l.at) {
		err = fmt.Errorf("load plan of workspace %s: %w: the loaded one does not contain %s",
			workspace, ErrPeriodNotStarted, l.at.Format(time.RFC3339Nano))
	}
	if err != nil {
		l.info, l.err = PlanInfo{}, err
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.dropped || info.Revision < l.floor {
		return false
	}
	if !s.keepLocked(workspace, info, lifetime{now: c.elapsed(), expires: began + c.options.TTL}) {
		return false
	}
	// No one may join once the lock is free: an invalidation that comes then finds
	// the stored value, not this load.
	s.endLocked(workspace, l)
	l.info, l.err = info, nil
	return true
}
