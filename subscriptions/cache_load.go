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
	// probe is whether the load looks if a database that was away is back.
	probe bool
	info  PlanInfo
	err   error
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
	return l.info.holds(at)
}

// turn is how a lookup that found nothing live goes on: with a load to wait for,
// or with an answer.
type turn struct {
	load *loading
	// own is whether this caller began the load.
	own bool
	// patience is how long to wait for the load, 0 as long as it takes.
	patience time.Duration
	info     PlanInfo
	err      error
}

// await begins a load or joins the one under way.
func (c *Cache) await(ctx context.Context, workspace string, at time.Time) (PlanInfo, error) {
	for {
		t := c.join(ctx, workspace, at)
		if t.load == nil {
			return t.info, t.err
		}
		if err := t.wait(ctx); err != nil {
			return PlanInfo{}, fmt.Errorf("wait for plan of workspace %s: %w", workspace, err)
		}
		if t.load.pending() || away(t.load.err) {
			if info, ok := c.standIn(workspace, at); ok {
				return info, nil
			}
		}
		if t.load.pending() {
			continue
		}
		if t.own || t.load.answers(at) {
			c.tally.misses.Add(1)
			return t.load.info, t.load.err
		}
	}
}

// wait returns when the load is done or the patience is over, or with ctx's error.
func (t turn) wait(ctx context.Context) error {
	var over <-chan time.Time
	if t.patience > 0 {
		timer := time.NewTimer(t.patience)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-t.load.done:
	case <-over:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (l *loading) pending() bool {
	select {
	case <-l.done:
		return false
	default:
		return true
	}
}

// join finds the load to wait for, or begins it, or answers: with the value that
// another load has stored in the meantime, or while the database is away with
// what may stand in for one.
func (c *Cache) join(ctx context.Context, workspace string, at time.Time) turn {
	s := c.shard(workspace)
	s.mu.Lock()
	defer s.mu.Unlock()
	now, generation := c.elapsed(), c.generation.Load()
	e := s.entries[workspace]
	if e != nil && e.serves(at, now, generation) {
		s.hits.Add(1)
		return turn{info: e.info, err: e.refusal}
	}
	hasSpare := e != nil && e.standsIn(at, now, generation)
	if l := s.loads[workspace]; l != nil {
		if hasSpare && c.outage.known() != nil {
			return turn{info: c.stale(e, now)}
		}
		return turn{load: l}
	}
	may, fault := c.outage.ask(now)
	if !may && hasSpare {
		return turn{info: c.stale(e, now)}
	}
	if !may {
		c.tally.misses.Add(1)
		return turn{err: fmt.Errorf("plan of workspace %s is not read while the database is away: %w", workspace, fault)}
	}
	l := &loading{
		at: at, done: make(chan struct{}), probe: fault != nil,
		err: fmt.Errorf("load plan of workspace %s: the loader did not return", workspace),
	}
	s.loads[workspace] = l
	go c.run(context.WithoutCancel(ctx), workspace, l)
	t := turn{load: l, own: true}
	if l.probe && hasSpare {
		t.patience = probePatience
	}
	return t
}

// standIn is the value that may be served because the database is away.
func (c *Cache) standIn(workspace string, at time.Time) (PlanInfo, bool) {
	s := c.shard(workspace)
	s.mu.RLock()
	defer s.mu.RUnlock()
	now := c.elapsed()
	e := s.entries[workspace]
	if e == nil || !e.standsIn(at, now, c.generation.Load()) {
		return PlanInfo{}, false
	}
	return c.stale(e, now), true
}

func (c *Cache) stale(e *cached, now time.Duration) PlanInfo {
	c.tally.stale.Add(1)
	e.touch(now)
	info := e.info
	info.Exact = info.Exact && now < e.expires
	return info
}

// run reads until no invalidation has overtaken the reading, and wakes those
// who wait, whatever happens in the loader.
func (c *Cache) run(ctx context.Context, workspace string, l *loading) {
	s := c.shard(workspace)
	defer func() {
		if l.probe {
			c.outage.ended()
		}
		if l.err != nil && !errors.Is(l.err, ErrNotEntitled) {
			c.tally.failed.Add(1)
		}
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
	s := c.shard(workspace)
	s.mu.Lock()
	l.dropped = false
	s.mu.Unlock()

	began, generation := c.elapsed(), c.generation.Load()
	info, err := c.read(ctx, workspace, l)
	c.outage.heard(err)
	if err != nil && !errors.Is(err, ErrNotEntitled) {
		l.info, l.err = PlanInfo{}, err
		return true
	}
	e := c.entry(info, err, began)
	e.generation = generation
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.dropped || e.info.Revision < l.floor || c.generation.Load() != generation {
		return false
	}
	if !s.keepLocked(workspace, e, c.elapsed()) {
		return false
	}
	// No one may join once the lock is free: an invalidation that comes then finds
	// the stored value, not this load.
	s.endLocked(workspace, l)
	l.info, l.err = e.info, e.refusal
	return true
}

// read asks the database, within the timeout.
func (c *Cache) read(ctx context.Context, workspace string, l *loading) (PlanInfo, error) {
	timeout := c.options.LoadTimeout
	if l.probe {
		timeout = min(timeout, probeTimeout)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	info, err := c.load(ctx, workspace, l.at)
	if err == nil && !info.holds(l.at) {
		err = fmt.Errorf("load plan of workspace %s: %w: the loaded one does not hold at %s",
			workspace, ErrPeriodNotStarted, l.at.Format(time.RFC3339Nano))
	}
	return info, err
}

// entry is what a reading that began then is kept as.
func (c *Cache) entry(info PlanInfo, refusal error, began time.Duration) *cached {
	if refusal != nil {
		expires := began + min(refusalTTL, c.options.TTL)
		return &cached{refusal: refusal, expires: expires, spare: expires}
	}
	expires := began + c.options.TTL
	return &cached{
		info: info, from: info.Period.Start, until: info.until(), expires: expires, spare: expires + c.options.TTL,
	}
}
