package subscriptions_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headroomhq/headroom/subscriptions"
)

// errAway is what a load says of a database that nobody listens for.
var errAway = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}

// shaky is a database that is away when a test says so. It counts the loads.
type shaky struct {
	mu    sync.Mutex
	err   error
	hangs bool
	loads int
}

// become sets how loads go from here on, and counts them from zero.
func (s *shaky) become(err error, hangs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.hangs, s.loads = err, hangs, 0
}

func (s *shaky) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loads
}

func (s *shaky) load(ctx context.Context, workspace string, _ time.Time) (subscriptions.PlanInfo, error) {
	s.mu.Lock()
	s.loads++
	err, hangs := s.err, s.hangs
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return subscriptions.PlanInfo{}, ctx.Err()
	}
	if err != nil {
		return subscriptions.PlanInfo{}, err
	}
	info := revision(1, november)
	info.WorkspaceID, info.Exact, info.ReadAt = workspace, true, time.Now()
	return info, nil
}

// ttl is the TTL of these tests.
const ttl = time.Minute

// outage runs a test with a cache that has read workspace w, at a time when its
// TTL has passed since.
func outage(t *testing.T, run func(t *testing.T, c *subscriptions.Cache, db *shaky)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		db := &shaky{}
		c := subscriptions.NewCache(db.load, subscriptions.CacheOptions{TTL: ttl})
		info, err := c.Lookup(t.Context(), "w", november.Start)
		if err != nil || !info.Exact {
			t.Fatalf("the first lookup says %+v, %v", info, err)
		}
		<-time.After(ttl)
		run(t, c, db)
	})
}

func wantStale(t *testing.T, c *subscriptions.Cache, readAt time.Time) {
	t.Helper()
	info, err := c.Lookup(t.Context(), "w", november.Start)
	if err != nil || info.Exact || !info.ReadAt.Equal(readAt) {
		t.Fatalf("lookup says exact %v, read at %s, %v; want the stale one of %s", info.Exact, info.ReadAt, err, readAt)
	}
}

func wantExact(t *testing.T, c *subscriptions.Cache) {
	t.Helper()
	info, err := c.Lookup(t.Context(), "w", november.Start)
	if err != nil || !info.Exact {
		t.Fatalf("lookup says exact %v, %v; want an exact one", info.Exact, err)
	}
}

func wantError(t *testing.T, c *subscriptions.Cache, want error) {
	t.Helper()
	if info, err := c.Lookup(t.Context(), "w", november.Start); !errors.Is(err, want) {
		t.Fatalf("lookup says %+v, %v; want %v", info, err, want)
	}
}

func TestCacheServesOneMoreTTLWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	outage(t, func(t *testing.T, c *subscriptions.Cache, db *shaky) {
		readAt := time.Now().Add(-ttl)
		db.become(errAway, false)
		wantStale(t, c, readAt)
		<-time.After(ttl - 1)
		wantStale(t, c, readAt)
		if s := c.Stats(); s.Stale != 2 || s.Failed != 2 {
			t.Errorf("the counts are %+v", s)
		}
		<-time.After(1)
		wantError(t, c, errAway)
	})
}

func TestCacheIsExactAgainWhenTheDatabaseIsBack(t *testing.T) {
	t.Parallel()
	outage(t, func(t *testing.T, c *subscriptions.Cache, db *shaky) {
		db.become(errAway, false)
		wantStale(t, c, time.Now().Add(-ttl))
		wantStale(t, c, time.Now().Add(-ttl))
		db.become(nil, false)
		<-time.After(250 * time.Millisecond)
		// The first to ask finds out, however long ago the last one did.
		wantExact(t, c)
		if s := c.Stats(); s.Stale != 2 {
			t.Errorf("the counts are %+v", s)
		}
	})
}

func TestCacheDoesNotHammerADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	outage(t, func(t *testing.T, c *subscriptions.Cache, db *shaky) {
		db.become(errAway, false)
		readAt := time.Now().Add(-ttl)
		for range 1000 { // ten seconds
			wantStale(t, c, readAt)
			if _, err := c.Lookup(t.Context(), "unknown", november.Start); !errors.Is(err, errAway) {
				t.Fatalf("a workspace that was never read gave %v", err)
			}
			<-time.After(10 * time.Millisecond)
		}
		if n := db.count(); n < 20 || n > 42 {
			t.Errorf("%d loads in ten seconds, want four a second", n)
		}
	})
}

func TestCacheDoesNotWaitForADatabaseThatHangs(t *testing.T) {
	t.Parallel()
	outage(t, func(t *testing.T, c *subscriptions.Cache, db *shaky) {
		db.become(nil, true)
		readAt, began := time.Now().Add(-ttl), time.Now()
		wantStale(t, c, readAt)
		if took := time.Since(began); took != subscriptions.DefaultCacheLoadTimeout {
			t.Errorf("the first lookup took %s, want the load's timeout", took)
		}
		began = time.Now()
		for i := range 1000 {
			wantStale(t, c, readAt)
			if _, err := c.Lookup(t.Context(), "unknown-"+strconv.Itoa(i), november.Start); err == nil {
				t.Fatal("a workspace that was never read has a plan")
			}
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("2000 lookups took %s together, want that only the probes wait", took)
		}
		db.become(nil, false)
		<-time.After(time.Second - 1)
		wantExact(t, c)
	})
}

func TestCacheServesNoStaleValueThatIsOverDroppedOrExpired(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(c *subscriptions.Cache){
		"invalidated by a revision": func(c *subscriptions.Cache) { c.Invalidate("w", 2) },
		"invalidated":               func(c *subscriptions.Cache) { c.Invalidate("w", 0) },
		"expired":                   func(c *subscriptions.Cache) { c.Expire() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outage(t, func(t *testing.T, c *subscriptions.Cache, db *shaky) {
				db.become(errAway, false)
				wantStale(t, c, time.Now().Add(-ttl))
				end(c)
				wantError(t, c, errAway)
			})
		})
	}
	t.Run("period over", func(t *testing.T) {
		t.Parallel()
		outage(t, func(t *testing.T, c *subscriptions.Cache, db *shaky) {
			db.become(errAway, false)
			if info, err := c.Lookup(t.Context(), "w", november.End); !errors.Is(err, errAway) {
				t.Errorf("lookup says %+v, %v", info, err)
			}
		})
	})
}

func TestCacheTakesAnAnswerForNoOutage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		away bool
	}{
		"not entitled":         {subscriptions.ErrNotEntitled, false},
		"no default plan":      {subscriptions.ErrNoDefaultPlan, false},
		"unknown plan":         {subscriptions.ErrUnknownPlan, false},
		"period not started":   {subscriptions.ErrPeriodNotStarted, false},
		"rows without sense":   {errors.New("decode snapshot"), false},
		"a table is missing":   {&pgconn.PgError{Code: "42P01"}, false},
		"shut down":            {&pgconn.PgError{Code: "57P01"}, true},
		"starting":             {&pgconn.PgError{Code: "57P03"}, true},
		"too many connections": {&pgconn.PgError{Code: "53300"}, true},
		"no connection":        {errAway, true},
		"no answer":            {context.DeadlineExceeded, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outage(t, func(t *testing.T, cache *subscriptions.Cache, db *shaky) {
				db.become(c.err, false)
				if c.away {
					wantStale(t, cache, time.Now().Add(-ttl))
				} else {
					wantError(t, cache, c.err)
				}
				// Only an outage keeps another workspace's load from beginning.
				db.become(c.err, false)
				for range 3 {
					if _, err := cache.Lookup(t.Context(), "other", november.Start); err == nil {
						t.Fatal("a workspace that was never read has a plan")
					}
				}
				if began := db.count() == 3; began == c.away && !errors.Is(c.err, subscriptions.ErrNotEntitled) {
					t.Errorf("%d of 3 loads of another workspace began", db.count())
				}
			})
		})
	}
}
