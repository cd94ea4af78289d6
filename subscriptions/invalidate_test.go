package subscriptions_test

import (
	"testing"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

func TestInvalidateRaisesTheRevisionAndTells(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	row := assign(t, s, subscriptions.Assignment{})
	revision, err := s.Invalidate(t.Context(), "acme", "by hand")
	if err != nil || revision != 2 {
		t.Errorf("revision is %d, %v, want 2", revision, err)
	}
	wantActive(t, s, row.ID, 2)
	wantTold(t, pool, "renewed created", "invalidated 1", "invalidated 2")
	events := outbox(t, pool)
	if body := string(events[len(events)-1].Body); body != `{"reason": "by hand", "workspace_id": "acme", "plan_revision": 2}` {
		t.Errorf("the news is %s", body)
	}
	if n := count(t, pool, `SELECT count(*) FROM subscription_changes`); n != 0 {
		t.Errorf("it left %d entries in the audit trail, though nothing changed", n)
	}
	if _, err := s.Invalidate(t.Context(), "a.b", "by hand"); err == nil {
		t.Error("a workspace of no form is accepted")
	}
}

func TestInvalidateFindsAnewWhichSubscriptionCounts(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	pro := follow(t, s, running(t, pool, "sub_1", "pro"))
	free := follow(t, s, running(t, pool, "sub_2", "free"))
	wantActive(t, s, pro.ID, 1)
	// A pointer that no transition moved, as after a grace that nobody looked at.
	if _, err := pool.Exec(t.Context(), `UPDATE subscriptions SET status = 'past_due', unpaid_since = now() - interval '60 days' WHERE id = $1::uuid`, pro.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Invalidate(t.Context(), "acme", "by hand"); err != nil {
		t.Fatal(err)
	}
	wantActive(t, s, free.ID, 2)
}

func TestInvalidateReachesTheCachesOfAnUnknownWorkspace(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	cache := subscriptions.NewCache(s.PlanInfo, subscriptions.CacheOptions{})
	before, err := cache.Lookup(t.Context(), "acme", noon)
	if err != nil {
		t.Fatal(err)
	}
	revision, err := s.Invalidate(t.Context(), "acme", "by hand")
	if err != nil || revision != 0 {
		t.Fatalf("revision is %d, %v, want 0", revision, err)
	}
	wantTold(t, pool, "invalidated 0")
	cache.Invalidate("acme", revision)
	after, err := cache.Lookup(t.Context(), "acme", noon.Add(time.Second))
	if err != nil || !after.ReadAt.After(before.ReadAt) {
		t.Errorf("the cache still has what it read at %s (%v)", before.ReadAt, err)
	}
	if n := count(t, pool, `SELECT count(*) FROM workspaces`); n != 0 {
		t.Error("it made the workspace known, which would entitle it where unknown ones are not")
	}
}
