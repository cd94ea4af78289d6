package main

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// How many instances hear, and of how many commits.
const (
	ears    = 10
	commits = 200
)

// ear is an instance's cache that says what it was told, and when.
type ear struct {
	*subscriptions.Cache
	heard chan<- hearing
}

type hearing struct {
	revision int64
	at       time.Time
}

func (e *ear) Invalidate(workspace string, revision int64) {
	e.Cache.Invalidate(workspace, revision)
	e.heard <- hearing{revision, time.Now()}
}

// listeners are instances with connections of their own, which all hear.
func (e *estate) listeners() <-chan hearing {
	e.Helper()
	heard := make(chan hearing, ears*commits)
	for range ears {
		cache := subscriptions.NewCache(e.store.PlanInfo, subscriptions.CacheOptions{})
		news := client.NewInvalidations(client.InvalidationsOptions{
			JetStream: e.connect(schematest.NATSURL(e.TB)), Plans: &ear{cache, heard}, Log: schematest.Logger(e.TB),
		})
		e.runs(news.Run)
		e.eventually("the instance hears", func() bool { return cache.Stats().Expiries == 1 })
	}
	return heard
}

// commit changes a workspace's plan and returns how long after the commit, and after the
// beginning of its transaction, the last instance's cache knew.
func (e *estate) commit(n int, heard <-chan hearing) (sinceCommit, sinceBegin time.Duration) {
	e.Helper()
	plan := []string{"pro", "free"}[n%2]
	began := time.Now()
	e.assign("ws", plan)
	committed := time.Now()
	last := committed
	for range ears {
		select {
		case h := <-heard:
			if h.revision != int64(n+1) {
				e.Fatalf("an instance heard of revision %d, want %d", h.revision, n+1)
			}
			if h.at.After(last) {
				last = h.at
			}
		case <-time.After(patience):
			e.Fatalf("an instance did not hear of revision %d", n+1)
		}
	}
	return last.Sub(committed), last.Sub(began)
}

// percentile takes sorted durations.
func percentile(sorted []time.Duration, p float64) time.Duration {
	return sorted[int(math.Ceil(p*float64(len(sorted))))-1]
}

func TestTenInstancesHearOfEachCommit(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	heard := e.listeners()
	var sinceCommit, sinceBegin []time.Duration
	for n := range commits {
		c, b := e.commit(n, heard)
		sinceCommit, sinceBegin = append(sinceCommit, c), append(sinceBegin, b)
	}
	slices.Sort(sinceCommit)
	slices.Sort(sinceBegin)
	t.Logf("%d commits, to the last of %d instances: p50 %s, p99 %s after the commit; p50 %s, p99 %s after the transaction began",
		commits, ears, percentile(sinceCommit, .5), percentile(sinceCommit, .99), percentile(sinceBegin, .5), percentile(sinceBegin, .99))
}

// From a commit to the last of ten instances: Assign, outbox, relay, stream, caches.
func BenchmarkCommitToLastInstance(b *testing.B) {
	e := newEstate(b)
	heard := e.listeners()
	var all []time.Duration
	n := 0
	for b.Loop() {
		c, _ := e.commit(n, heard)
		all = append(all, c)
		n++
	}
	slices.Sort(all)
	b.ReportMetric(float64(percentile(all, .5).Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(percentile(all, .99).Microseconds())/1000, "p99-ms")
}
