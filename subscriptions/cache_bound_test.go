package subscriptions_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	load := func(_ context.Context, workspace string, _ time.Time) (subscriptions.PlanInfo, error) {
		info := revision(1, november)
		info.WorkspaceID = workspace
		return info, nil
	}
	for _, most := range []int{1, 10, 1000, 5000} {
		c := subscriptions.NewCache(load, subscriptions.CacheOptions{MaxEntries: most})
		for i := range 3 * most {
			workspace := "w" + strconv.Itoa(i)
			info, err := c.Lookup(t.Context(), workspace, november.Start)
			if err != nil || info.WorkspaceID != workspace {
				t.Fatalf("lookup of %s says %s, %v", workspace, info.WorkspaceID, err)
			}
		}
		if got := c.Len(); got > most || got < most/2 {
			t.Errorf("a cache of %d holds %d", most, got)
		}
	}
}

func TestCacheEvictsWhatIsNotAskedFor(t *testing.T) {
	t.Parallel()
	loads := map[string]int{}
	now := november.Start
	load := func(_ context.Context, workspace string, _ time.Time) (subscriptions.PlanInfo, error) {
		loads[workspace]++
		return revision(1, november), nil
	}
	c := subscriptions.NewCache(load, subscriptions.CacheOptions{MaxEntries: 8, Now: func() time.Time { return now }})
	for i := range 100 {
		now = november.Start.Add(time.Duration(i) * time.Second)
		for _, workspace := range []string{"busy", "w" + strconv.Itoa(i)} {
			if _, err := c.Lookup(t.Context(), workspace, november.Start); err != nil {
				t.Fatal(err)
			}
		}
	}
	if loads["busy"] != 1 {
		t.Errorf("a busy workspace was loaded %d times", loads["busy"])
	}
}

func BenchmarkCacheHit(b *testing.B) {
	c := subscriptions.NewCache(func(context.Context, string, time.Time) (subscriptions.PlanInfo, error) {
		return revision(1, november), nil
	}, subscriptions.CacheOptions{})
	workspaces := make([]string, 1024)
	for i := range workspaces {
		workspaces[i] = "workspace-" + strconv.Itoa(i)
		if _, err := c.Lookup(b.Context(), workspaces[i], november.Start); err != nil {
			b.Fatal(err)
		}
	}
	ctx, i := b.Context(), 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		if _, err := c.Lookup(ctx, workspaces[i&1023], november.Start); err != nil {
			b.Fatal(err)
		}
	}
}

// A lookup during an outage of a value whose TTL is over: what a decision pays then.
func BenchmarkCacheStale(b *testing.B) {
	db, now := &shaky{}, november.Start
	c := subscriptions.NewCache(db.load, subscriptions.CacheOptions{Now: func() time.Time { return now }})
	ctx := b.Context()
	ask := func() {
		if _, err := c.Lookup(ctx, "w", november.Start); err != nil {
			b.Fatal(err)
		}
	}
	ask()
	db.become(errAway, false)
	now = now.Add(subscriptions.DefaultCacheTTL)
	ask() // begins the outage
	ask() // the first probe
	b.ReportAllocs()
	for b.Loop() {
		ask()
	}
}
