package subscriptions_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

func TestCacheInvalidationDropsOnlyOlderValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		announced int64
		dropped   bool
	}{
		"a later revision":   {6, true},
		"the same revision":  {5, false},
		"an older revision":  {4, false},
		"no revision at all": {0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db := newLoader()
				cache := subscriptions.NewCache(db.load, subscriptions.CacheOptions{})
				answer := lookup(t.Context(), cache, november.Start)
				(<-db.begun).reply <- reply{info: revision(5, november)}
				wantRevision(t, <-answer, 5)

				cache.Invalidate("w", c.announced)
				cache.Invalidate("another", 0)
				answer = lookup(t.Context(), cache, november.Start)
				if !c.dropped {
					wantRevision(t, <-answer, 5)
					return
				}
				(<-db.begun).reply <- reply{info: revision(7, november)}
				wantRevision(t, <-answer, 7)
			})
		})
	}
}

func TestCacheInvalidationDuringALoadWins(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		announced int64
		read      int64
		again     bool
	}{
		"the load read an older one":       {6, 5, true},
		"the load read the announced one":  {6, 6, false},
		"the load read a later one":        {6, 7, false},
		"nobody knows what the load read":  {0, 7, true},
		"the announcement itself is older": {3, 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db := newLoader()
				cache := subscriptions.NewCache(db.load, subscriptions.CacheOptions{})
				before := lookup(t.Context(), cache, november.Start)
				first := <-db.begun
				cache.Invalidate("w", c.announced)
				after := lookup(t.Context(), cache, november.Start)
				synctest.Wait()
				first.reply <- reply{info: revision(c.read, november)}
				want := c.read
				if c.again {
					want = 8
					(<-db.begun).reply <- reply{info: revision(8, november)}
				}
				wantRevision(t, <-before, want)
				wantRevision(t, <-after, want)
				wantRevision(t, <-lookup(t.Context(), cache, november.Start), want)
			})
		})
	}
}

func TestCacheGivesUpOnAPlanThatNeverSettles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newLoader()
		c := subscriptions.NewCache(db.load, subscriptions.CacheOptions{})
		answer := lookup(t.Context(), c, november.Start)
		for range 4 {
			l := <-db.begun
			c.Invalidate("w", 0)
			l.reply <- reply{info: revision(1, november)}
		}
		if r := <-answer; !errors.Is(r.err, subscriptions.ErrStalePlan) {
			t.Fatalf("lookup says %v, want ErrStalePlan", r.err)
		}
		// The announcement does not outlive the load: a revision that nobody will
		// ever reach must not shut a workspace out.
		answer = lookup(t.Context(), c, november.Start)
		(<-db.begun).reply <- reply{info: revision(1, november)}
		wantRevision(t, <-answer, 1)
	})
}

// TestCacheNeverGoesBackUnderLoad has readers and a writer whose announcements
// come after its commits, as they do in production: once Invalidate returned, no
// lookup that begins may see an older revision.
func TestCacheNeverGoesBackUnderLoad(t *testing.T) {
	t.Parallel()
	var db struct {
		sync.RWMutex
		revision int64
	}
	load := func(context.Context, string, time.Time) (subscriptions.PlanInfo, error) {
		db.RLock()
		defer db.RUnlock()
		return revision(db.revision, november), nil
	}
	var announced struct {
		sync.RWMutex
		revision int64
	}
	c := subscriptions.NewCache(load, subscriptions.CacheOptions{})
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				announced.RLock()
				floor := announced.revision
				announced.RUnlock()
				info, err := c.Lookup(t.Context(), "w", november.Start)
				if err != nil && !errors.Is(err, subscriptions.ErrStalePlan) {
					t.Error(err)
					return
				}
				if err == nil && info.Revision < floor {
					t.Errorf("revision %d was served after %d was announced", info.Revision, floor)
					return
				}
			}
		})
	}
	for n := int64(1); n <= 2000; n++ {
		db.Lock()
		db.revision = n
		db.Unlock()
		c.Invalidate("w", n)
		announced.Lock()
		announced.revision = n
		announced.Unlock()
	}
	close(stop)
	readers.Wait()
}
