package subscriptions_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// november is the period that these tests live in.
var november = subscriptions.Period{
	Start: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
	End:   time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC),
}

// reply is what a load brings.
type reply struct {
	info subscriptions.PlanInfo
	err  error
}

// loader is a database whose every answer waits for the test: each load sends
// itself to begun and returns what it is sent.
type loader struct {
	begun chan *load
}

type load struct {
	ctx   context.Context
	at    time.Time
	reply chan reply
}

func newLoader() *loader { return &loader{begun: make(chan *load)} }

func (l *loader) load(ctx context.Context, _ string, at time.Time) (subscriptions.PlanInfo, error) {
	this := &load{ctx: ctx, at: at, reply: make(chan reply)}
	l.begun <- this
	select {
	case r := <-this.reply:
		return r.info, r.err
	case <-ctx.Done():
		return subscriptions.PlanInfo{}, ctx.Err()
	}
}

func revision(n int64, p subscriptions.Period) subscriptions.PlanInfo {
	return subscriptions.PlanInfo{
		WorkspaceID: "w", Revision: n, Period: p, UsageEpoch: "e" + strconv.FormatInt(n, 10),
		Snapshot: subscriptions.Snapshot{PlanKey: "pro", PlanRevision: 1, Features: map[string]schemas.Limit{}},
	}
}

// lookup asks in the background.
func lookup(ctx context.Context, c *subscriptions.Cache, at time.Time) <-chan reply {
	answer := make(chan reply, 1)
	go func() {
		info, err := c.Lookup(ctx, "w", at)
		answer <- reply{info, err}
	}()
	return answer
}

func wantRevision(t *testing.T, r reply, n int64) {
	t.Helper()
	if r.err != nil || r.info.Revision != n {
		t.Fatalf("lookup says revision %d, %v; want %d", r.info.Revision, r.err, n)
	}
}

func TestCacheSharesOneLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newLoader()
		c := subscriptions.NewCache(db.load, subscriptions.CacheOptions{})
		var answers []<-chan reply
		for range 100 {
			answers = append(answers, lookup(t.Context(), c, november.Start))
		}
		first := <-db.begun
		synctest.Wait()
		first.reply <- reply{info: revision(1, november)}
		for _, answer := range answers {
			wantRevision(t, <-answer, 1)
		}
		wantRevision(t, <-lookup(t.Context(), c, november.End.Add(-1)), 1)
	})
}

func TestCacheForgetsAfterItsTTL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newLoader()
		c := subscriptions.NewCache(db.load, subscriptions.CacheOptions{TTL: time.Minute})
		answer := lookup(t.Context(), c, november.Start)
		(<-db.begun).reply <- reply{info: revision(1, november)}
		wantRevision(t, <-answer, 1)

		<-time.After(time.Minute - 1)
		wantRevision(t, <-lookup(t.Context(), c, november.Start), 1)
		<-time.After(1)
		answer = lookup(t.Context(), c, november.Start)
		// What was read after the TTL counts, even if it is older: a database that was
		// put back from a backup.
		(<-db.begun).reply <- reply{info: revision(0, november)}
		wantRevision(t, <-answer, 0)
	})
}

func TestCacheServesNoInstantOutsideThePeriod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newLoader()
		c := subscriptions.NewCache(db.load, subscriptions.CacheOptions{})
		answer := lookup(t.Context(), c, november.End.Add(-1))
		(<-db.begun).reply <- reply{info: revision(1, november)}
		wantRevision(t, <-answer, 1)

		december := subscriptions.CalendarMonth(november.End)
		answer = lookup(t.Context(), c, november.End)
		(<-db.begun).reply <- reply{info: revision(2, december)}
		wantRevision(t, <-answer, 2)

		// An instant before the period is loaded too, and an older reading of it is
		// neither stored nor handed out.
		answer = lookup(t.Context(), c, november.End.Add(-1))
		for range 4 {
			(<-db.begun).reply <- reply{info: revision(1, november)}
		}
		if r := <-answer; !errors.Is(r.err, subscriptions.ErrStalePlan) {
			t.Fatalf("lookup says %v, %v; want ErrStalePlan", r.info.Revision, r.err)
		}
		wantRevision(t, <-lookup(t.Context(), c, november.End), 2)
	})
}

func TestCacheKeepsTheLaterPeriodOfOneRevision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newLoader()
		c := subscriptions.NewCache(db.load, subscriptions.CacheOptions{})
		for _, at := range []time.Time{november.End, november.End.Add(-1)} {
			answer := lookup(t.Context(), c, at)
			(<-db.begun).reply <- reply{info: revision(0, subscriptions.CalendarMonth(at))}
			if r := <-answer; r.err != nil || !r.info.Period.Contains(at) {
				t.Fatalf("lookup for %s says %v, %v", at, r.info.Period, r.err)
			}
		}
		wantRevision(t, <-lookup(t.Context(), c, november.End), 0)
	})
}

// TestCacheTakesTheDefaultPlanAfterASubscriptionThatEnded has a subscription on
// newer terms than the default plan's, which ended without anything being written.
func TestCacheTakesTheDefaultPlanAfterASubscriptionThatEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newLoader()
		c := subscriptions.NewCache(db.load, subscriptions.CacheOptions{})
		end := november.Start.Add(10 * 24 * time.Hour)
		subscription := revision(1, subscriptions.Period{Start: november.Start.Add(time.Hour), End: end})
		subscription.SubscriptionID, subscription.Snapshot.PlanRevision = "s", 2
		fallback := revision(1, november)

		answer := lookup(t.Context(), c, end.Add(-1))
		(<-db.begun).reply <- reply{info: subscription}
		wantSubscription(t, <-answer, "s")
		answer = lookup(t.Context(), c, end)
		(<-db.begun).reply <- reply{info: fallback}
		wantSubscription(t, <-answer, "")
		wantSubscription(t, <-lookup(t.Context(), c, end), "")
	})
}

func wantSubscription(t *testing.T, r reply, id string) {
	t.Helper()
	if r.err != nil || r.info.SubscriptionID != id {
		t.Fatalf("lookup says subscription %q, %v; want %q", r.info.SubscriptionID, r.err, id)
	}
}

func TestCacheRefusesALoadOfAnotherPeriod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newLoader()
		c := subscriptions.NewCache(db.load, subscriptions.CacheOptions{})
		answer := lookup(t.Context(), c, november.End)
		(<-db.begun).reply <- reply{info: revision(1, november)}
		if r := <-answer; !errors.Is(r.err, subscriptions.ErrPeriodNotStarted) {
			t.Fatalf("lookup says %v, want ErrPeriodNotStarted", r.err)
		}
	})
}

func TestCacheLoadOutlivesTheCallerThatBeganIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newLoader()
		c := subscriptions.NewCache(db.load, subscriptions.CacheOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		impatient := lookup(ctx, c, november.Start)
		l := <-db.begun
		patient := lookup(t.Context(), c, november.Start)
		synctest.Wait()
		cancel()
		if r := <-impatient; !errors.Is(r.err, context.Canceled) {
			t.Fatalf("the canceled lookup says %v", r.err)
		}
		if l.ctx.Err() != nil {
			t.Fatalf("the load was canceled with its first caller")
		}
		l.reply <- reply{info: revision(1, november)}
		wantRevision(t, <-patient, 1)
	})
}

func TestCacheLoadEndsByItsOwnTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newLoader()
		c := subscriptions.NewCache(db.load, subscriptions.CacheOptions{LoadTimeout: time.Second})
		answer := lookup(t.Context(), c, november.Start)
		<-db.begun
		began := time.Now()
		if r := <-answer; !errors.Is(r.err, context.DeadlineExceeded) {
			t.Fatalf("lookup says %v, want a timeout", r.err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("the load ended after %v", took)
		}
	})
}

func TestCacheKeepsNoErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newLoader()
		c := subscriptions.NewCache(db.load, subscriptions.CacheOptions{})
		away := errors.New("database is away")
		var answers []<-chan reply
		for range 10 {
			answers = append(answers, lookup(t.Context(), c, november.Start))
		}
		l := <-db.begun
		synctest.Wait()
		l.reply <- reply{err: away}
		for _, answer := range answers {
			if r := <-answer; !errors.Is(r.err, away) {
				t.Fatalf("lookup says %v, want the load's error", r.err)
			}
		}
		answer := lookup(t.Context(), c, november.Start)
		(<-db.begun).reply <- reply{info: revision(1, november)}
		wantRevision(t, <-answer, 1)
	})
}

func TestCacheTakesNoOtherInstantsClockForItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newLoader()
		c := subscriptions.NewCache(db.load, subscriptions.CacheOptions{})
		ahead := lookup(t.Context(), c, november.End)
		l := <-db.begun
		inside := lookup(t.Context(), c, november.Start)
		synctest.Wait()
		l.reply <- reply{err: subscriptions.ErrPeriodNotStarted}
		if r := <-ahead; !errors.Is(r.err, subscriptions.ErrPeriodNotStarted) {
			t.Fatalf("lookup ahead says %v", r.err)
		}
		l = <-db.begun
		if !l.at.Equal(november.Start) {
			t.Fatalf("the second load is for %s", l.at)
		}
		l.reply <- reply{info: revision(1, november)}
		wantRevision(t, <-inside, 1)
	})
}

func TestCacheWakesItsWaitersWhenTheLoaderExits(t *testing.T) {
	t.Parallel()
	exits := func(context.Context, string, time.Time) (subscriptions.PlanInfo, error) {
		runtime.Goexit()
		return subscriptions.PlanInfo{}, nil
	}
	c := subscriptions.NewCache(exits, subscriptions.CacheOptions{})
	if _, err := c.Lookup(t.Context(), "w", november.Start); err == nil {
		t.Fatal("a loader that did not return gave a value")
	}
}
