package subscriptions_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

func TestCacheReadsEverythingAgainAfterExpire(t *testing.T) {
	t.Parallel()
	loads := map[string]int{}
	c := subscriptions.NewCache(func(_ context.Context, workspace string, _ time.Time) (subscriptions.PlanInfo, error) {
		loads[workspace]++
		return revision(1, november), nil
	}, subscriptions.CacheOptions{})
	all := []string{"a", "b", "c"}
	for range 3 {
		for range 2 {
			for _, workspace := range all {
				if _, err := c.Lookup(t.Context(), workspace, november.Start); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.Expire()
	}
	for _, workspace := range all {
		if loads[workspace] != 3 {
			t.Errorf("%s was read %d times, want once before each Expire", workspace, loads[workspace])
		}
	}
	if s := c.Stats(); s.Entries != 3 || s.Hits != 9 || s.Misses != 9 || s.Stale != 0 || s.Expiries != 3 {
		t.Errorf("the counts are %+v", s)
	}
}

func TestCacheDoesNotCountALoadFromBeforeExpireAsRead(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]reply{
		"that brought a plan": {info: revision(9, november)},
		"that was refused":    {err: subscriptions.ErrNotEntitled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db := newLoader()
				c := subscriptions.NewCache(db.load, subscriptions.CacheOptions{})
				before := lookup(t.Context(), c, november.Start)
				l := <-db.begun
				c.Expire()
				after := lookup(t.Context(), c, november.Start)
				synctest.Wait()
				l.reply <- first
				// The load goes on for both of them: nobody begins a second one.
				(<-db.begun).reply <- reply{info: revision(9, november)}
				wantRevision(t, <-before, 9)
				wantRevision(t, <-after, 9)
				wantRevision(t, <-lookup(t.Context(), c, november.Start), 9)
			})
		})
	}
}

func TestCacheTakesAnyReadingAfterExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newLoader()
		c := subscriptions.NewCache(db.load, subscriptions.CacheOptions{})
		answer := lookup(t.Context(), c, november.Start)
		(<-db.begun).reply <- reply{info: revision(7, november)}
		wantRevision(t, <-answer, 7)
		c.Expire()
		answer = lookup(t.Context(), c, november.Start)
		(<-db.begun).reply <- reply{info: revision(6, november)}
		wantRevision(t, <-answer, 6)
	})
}

func TestCacheServesNothingFromItsValidUntilOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newLoader()
		c := subscriptions.NewCache(db.load, subscriptions.CacheOptions{})
		until := november.Start.Add(10 * 24 * time.Hour)
		// The period goes on for long after, so that the default plan's month ends first.
		grace := revision(1, subscriptions.Period{Start: november.Start, End: november.End.AddDate(1, 0, 0)})
		grace.SubscriptionID, grace.ValidUntil = "s", until

		answer := lookup(t.Context(), c, november.Start)
		(<-db.begun).reply <- reply{info: grace}
		wantSubscription(t, <-answer, "s")
		wantSubscription(t, <-lookup(t.Context(), c, until.Add(-1)), "s")
		answer = lookup(t.Context(), c, until)
		(<-db.begun).reply <- reply{info: revision(1, november)}
		wantSubscription(t, <-answer, "")
		wantSubscription(t, <-lookup(t.Context(), c, until), "")

		c.Expire()
		answer = lookup(t.Context(), c, until)
		(<-db.begun).reply <- reply{info: grace}
		if r := <-answer; !errors.Is(r.err, subscriptions.ErrPeriodNotStarted) {
			t.Errorf("a reading that was over when it came gave %+v, %v", r.info, r.err)
		}
	})
}

func TestCacheRemembersForAMomentWhoIsNotEntitled(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, answer <-chan reply) {
		t.Helper()
		if r := <-answer; !errors.Is(r.err, subscriptions.ErrNotEntitled) {
			t.Fatalf("lookup says %+v, %v; want ErrNotEntitled", r.info, r.err)
		}
	}
	for name, end := range map[string]func(c *subscriptions.Cache){
		"until its time is over":        func(*subscriptions.Cache) { <-time.After(5 * time.Second) },
		"until it is invalidated":       func(c *subscriptions.Cache) { c.Invalidate("w", 1) },
		"until whatever is invalidated": func(c *subscriptions.Cache) { c.Invalidate("w", 0) },
		"until everything is":           func(c *subscriptions.Cache) { c.Expire() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db := newLoader()
				c := subscriptions.NewCache(db.load, subscriptions.CacheOptions{})
				answer := lookup(t.Context(), c, november.Start)
				(<-db.begun).reply <- reply{err: subscriptions.ErrNotEntitled}
				refused(t, answer)
				<-time.After(5*time.Second - 1)
				refused(t, lookup(t.Context(), c, november.End))

				end(c)
				answer = lookup(t.Context(), c, november.Start)
				l := <-db.begun
				// An assignment that is told of during the load wins here too.
				c.Invalidate("w", 1)
				l.reply <- reply{err: subscriptions.ErrNotEntitled}
				(<-db.begun).reply <- reply{info: revision(1, november)}
				wantRevision(t, <-answer, 1)
			})
		})
	}
}
