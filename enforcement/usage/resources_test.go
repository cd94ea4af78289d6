package usage_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

var dayOne = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// project is one unit that belongs to the project of that number, which is also its age.
func project(n int) usage.Change {
	return usage.Change{
		WorkspaceID: "w", Feature: "projects", Quantity: 1,
		ResourceID: fmt.Sprintf("p%02d", n), CreatedAt: dayOne.AddDate(0, 0, n),
	}
}

// lockedNow lists the locked resources, and holds the four ways to find out together.
func (h *house) lockedNow(t *testing.T) string {
	t.Helper()
	page, err := h.Resources(t.Context(), usage.ResourceQuery{WorkspaceID: "w", Feature: "projects"})
	if err != nil {
		t.Fatal(err)
	}
	var locked []string
	for _, r := range page.Resources {
		if r.Locked {
			locked = append(locked, r.ID)
		}
		checked := h.in(t, func(tx pgx.Tx) error { return h.CheckResource(t.Context(), tx, "w", "projects", r.ID) })
		if errors.As(checked, new(*usage.ResourceLocked)) != r.Locked || !r.Locked && checked != nil {
			t.Errorf("%s is listed as locked: %v, and checked as %v", r.ID, r.Locked, checked)
		}
		if diff := cmp.Diff(page.Reason(r), checked); diff != "" {
			t.Errorf("the reasons for %s differ (-listed +checked):\n%s", r.ID, diff)
		}
	}
	info, err := h.plans.Lookup(t.Context(), "w", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	features, err := h.Features(t.Context(), info)
	if err != nil {
		t.Fatal(err)
	}
	if n := features["projects"].Locked; n != int64(len(locked)) {
		t.Errorf("%d locked resources are counted, and %d listed", n, len(locked))
	}
	return strings.Join(locked, " ")
}

func tenProjects(t *testing.T) *house {
	t.Helper()
	h := open(t, plan("free", features{}), plan("three", features{"projects": 3}), plan("ten", features{"projects": 10}))
	h.assign(t, "w", "ten")
	for _, n := range []int{4, 9, 1, 7, 2, 10, 5, 3, 8, 6} { // not in the order of their age
		h.must(t, project(n))
	}
	return h
}

func (h *house) wantLocked(t *testing.T, after, want string) {
	t.Helper()
	if got := h.lockedNow(t); got != want {
		t.Errorf("after %s %q are locked, want %q", after, got, want)
	}
}

func TestADowngradeLocksTheNewestAndAnUpgradeUnlocksAll(t *testing.T) {
	t.Parallel()
	h := tenProjects(t)
	h.wantLocked(t, "nothing", "")
	h.assign(t, "w", "three")
	h.wantLocked(t, "the downgrade", "p04 p05 p06 p07 p08 p09 p10")

	_, err := h.consume(t, project(10))
	want := &usage.ResourceLocked{WorkspaceID: "w", Feature: "projects", ResourceID: "p10", PlanKey: "three", Used: 10, Limit: 3}
	if diff := cmp.Diff(error(want), typed(err)); diff != "" {
		t.Errorf("consume on a locked one (-want +got):\n%s", diff)
	}
	const hint = "p10 of projects is locked: plan three allows 3 and there are 10; release others, keep this one instead of another, or upgrade"
	if err == nil || err.Error() != hint {
		t.Errorf("it says %q, want %q", err, hint)
	}
	for name, call := range map[string]func(c usage.Change) error{
		"once": func(c usage.Change) error { _, err := h.ConsumeOnce(t.Context(), usage.Once{}, c); return err },
		"all": func(c usage.Change) error {
			return h.in(t, func(tx pgx.Tx) error { _, err := h.ConsumeAll(t.Context(), tx, []usage.Change{c}); return err })
		},
		"check": func(c usage.Change) error {
			v, err := h.Check(t.Context(), []usage.Change{c})
			return errors.Join(err, v[0].Err)
		},
	} {
		if diff := cmp.Diff(error(want), typed(call(project(10)))); diff != "" {
			t.Errorf("%s on a locked one (-want +got):\n%s", name, diff)
		}
		if err := call(project(1)); !errors.As(err, new(*usage.QuotaExceeded)) {
			t.Errorf("%s on an unlocked one without room: %v", name, err)
		}
		if err := call(project(11)); !errors.As(err, new(*usage.QuotaExceeded)) {
			t.Errorf("%s on a new one without room: %v", name, err)
		}
	}

	h.release(t, project(2))
	h.wantLocked(t, "the release of an unlocked one", "p05 p06 p07 p08 p09 p10")
	h.release(t, project(8))
	h.wantLocked(t, "the release of a locked one", "p05 p06 p07 p09 p10")
	h.assign(t, "w", "ten")
	h.wantLocked(t, "the upgrade", "")
	if used := h.must(t, project(1)); used != 9 {
		t.Errorf("%d used, want 9: an unlocked one may consume more", used)
	}
	h.assign(t, "w", "free") // does not include projects at all
	h.wantLocked(t, "a plan without the feature", "p01 p03 p04 p05 p06 p07 p09 p10")
	if n := h.count(t, `select count(*) from usage_resources`); n != 8 {
		t.Errorf("%d resources are left, want the 8 that nobody released", n)
	}
}

func TestTheWorkspaceChoosesWhatStaysUnlocked(t *testing.T) {
	t.Parallel()
	h := tenProjects(t)
	h.assign(t, "w", "three")
	keep := func(ids ...string) error { return h.Keep(t.Context(), "w", "projects", ids) }
	if err := keep("p10", "p04"); err != nil {
		t.Fatal(err)
	}
	h.wantLocked(t, "two were chosen", "p02 p03 p05 p06 p07 p08 p09")
	if err := keep("p09", "p08", "p07", "p01"); err != nil {
		t.Fatal(err)
	}
	h.wantLocked(t, "more than the limit were chosen", "p01 p02 p03 p04 p05 p06 p10")
	h.release(t, project(8))
	h.wantLocked(t, "a chosen one was released", "p02 p03 p04 p05 p06 p10")
	for name, c := range map[string]struct {
		ids  []string
		want string
	}{
		"one that is not registered": {[]string{"p01", "nobody"}, "names nobody, which is not registered"},
		"one of them twice":          {[]string{"p01", "p01"}, "names p01 twice"},
		"an id that can't be":        {[]string{"p 1"}, idRule},
	} {
		var fault *usage.InvalidArgument
		if err := keep(c.ids...); !errors.As(err, &fault) || fault.Field != "resources" || fault.Detail != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	h.wantLocked(t, "wrong choices", "p02 p03 p04 p05 p06 p10")
	if err := h.Keep(t.Context(), "v", "projects", []string{"p01"}); !errors.As(err, new(*usage.InvalidArgument)) {
		t.Errorf("another workspace's: %v", err)
	}
	if err := keep(); err != nil {
		t.Fatal(err)
	}
	h.wantLocked(t, "the choice was taken back", "p04 p05 p06 p07 p09 p10")
}

func TestUnitsWithoutAResourceComeFirst(t *testing.T) {
	t.Parallel()
	h := tenProjects(t)
	h.release(t, project(10))
	h.release(t, project(9))
	h.must(t, of("projects", 2))
	h.assign(t, "w", "three")
	h.wantLocked(t, "two units are nobody's", "p02 p03 p04 p05 p06 p07 p08")
	if balance := h.release(t, of("projects", 5)); balance.Used != 8 {
		t.Errorf("%d used after 5 of the units of nobody were given back, of which there were 2; want 8", balance.Used)
	}
	h.wantLocked(t, "they were given back", "p04 p05 p06 p07 p08")
}

func TestAResourceHoldsWhatItConsumed(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 10}), plan("four", features{"projects": 4}))
	big := project(1)
	big.Quantity = 3
	h.must(t, big)
	h.must(t, big)
	later := project(1)
	later.CreatedAt = dayOne.AddDate(1, 0, 0)
	h.must(t, later) // its age is what was said first
	h.must(t, project(2))
	page, err := h.Resources(t.Context(), usage.ResourceQuery{WorkspaceID: "w", Feature: "projects"})
	if err != nil {
		t.Fatal(err)
	}
	want := []usage.Resource{
		{ID: "p01", Quantity: 7, CreatedAt: dayOne.AddDate(0, 0, 1), Through: 7},
		{ID: "p02", Quantity: 1, CreatedAt: dayOne.AddDate(0, 0, 2), Through: 8},
	}
	if diff := cmp.Diff(want, page.Resources); diff != "" || page.Used != 8 || page.Loose != 0 {
		t.Errorf("%d used, %d of nobody; resources (-want +got):\n%s", page.Used, page.Loose, diff)
	}
	h.assign(t, "w", "four")
	h.wantLocked(t, "the first is larger than the limit", "p01 p02")
	if err := h.Keep(t.Context(), "w", "projects", []string{"p02"}); err != nil {
		t.Fatal(err)
	}
	h.wantLocked(t, "the small one was chosen", "p01")
	big.Quantity = 4
	if balance := h.release(t, big); balance.Used != 4 {
		t.Errorf("%d used, want 4", balance.Used)
	}
	h.wantLocked(t, "a part of the large one was released", "")
	big.Quantity = 100
	if balance := h.release(t, big); balance.Used != 1 {
		t.Errorf("%d used after more was released than it had, want 1", balance.Used)
	}
	if n := h.count(t, `select count(*) from usage_resources`); n != 1 {
		t.Errorf("%d resources, want one: what has nothing is forgotten", n)
	}
	if balance := h.release(t, project(7)); balance.Used != 1 {
		t.Errorf("%d used after the release of one that was never registered", balance.Used)
	}
}

func TestResourcesAreListedInPages(t *testing.T) {
	t.Parallel()
	h := tenProjects(t)
	if err := h.Keep(t.Context(), "w", "projects", []string{"p06", "p05"}); err != nil {
		t.Fatal(err)
	}
	h.assign(t, "w", "three")
	whole, err := h.Resources(t.Context(), usage.ResourceQuery{WorkspaceID: "w", Feature: "projects"})
	if err != nil || whole.Next != "" || len(whole.Resources) != 10 {
		t.Fatalf("%d in one page, next %q, %v", len(whole.Resources), whole.Next, err)
	}
	if whole.Resources[1].Kept != 2 || whole.Resources[2].ID != "p01" || whole.Resources[2].Kept != 0 {
		t.Errorf("the choice is not first: %+v", whole.Resources[:3])
	}
	for _, size := range []int{1, 3, 5, 9, 10, 5000} {
		var all []usage.Resource
		query := usage.ResourceQuery{WorkspaceID: "w", Feature: "projects", Limit: size}
		for {
			page, err := h.Resources(t.Context(), query)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, page.Resources...)
			if query.After = page.Next; page.Next == "" {
				break
			}
		}
		if diff := cmp.Diff(whole.Resources, all); diff != "" {
			t.Errorf("in pages of %d (-one page +many):\n%s", size, diff)
		}
	}
	for _, after := range []string{"x", "1.2", "1.x.p1", "x.1.p1", "1.1.", "1.99999999999999999999.p1", "99999999999.1.p1", "1.9223372036854775807.p1"} {
		_, err := h.Resources(t.Context(), usage.ResourceQuery{WorkspaceID: "w", Feature: "projects", After: after})
		if !errors.As(err, new(*usage.InvalidArgument)) {
			t.Errorf("after %q: %v", after, err)
		}
	}
	empty, err := h.Resources(t.Context(), usage.ResourceQuery{WorkspaceID: "w", Feature: "seats"})
	if err != nil || len(empty.Resources) != 0 || empty.Used != 0 {
		t.Errorf("of a feature without any: %+v, %v", empty, err)
	}
}

func TestReleasesOfOneResourceAtOnceGiveBackOnce(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 10}))
	three := project(1)
	three.Quantity = 3
	h.must(t, three)
	h.must(t, project(2))
	let := h.hold(t, "projects")
	var wait sync.WaitGroup
	for _, c := range []usage.Change{three, three, project(2)} {
		wait.Go(func() { h.release(t, c) })
	}
	until(t, "all three to wait for the counter", h.blocked(t, 3))
	let()
	wait.Wait()
	h.wantUsed(t, "projects", 0)
	if n := h.count(t, `select count(*) from usage_resources`); n != 0 {
		t.Errorf("%d resources are left, want none", n)
	}
}

// A feature whose kind the catalog changed has resources from before, which the new
// counter knows nothing of.
func TestAFlowNeitherGivesBackNorLocksWhatItHadAsAStock(t *testing.T) {
	t.Parallel()
	h, plans := fixedOn(t, schematest.Postgres(t), features{"projects": 5})
	h.must(t, project(1))
	plans.mu.Lock()
	plans.info.Snapshot.Kinds = map[string]subscriptions.FeatureKind{"projects": subscriptions.FeatureFlow}
	plans.mu.Unlock()
	h.must(t, of("projects", 3))
	err := h.in(t, func(tx pgx.Tx) error {
		_, err := h.Release(t.Context(), tx, project(1))
		return err
	})
	if !errors.As(err, new(*usage.InvalidArgument)) {
		t.Errorf("a resource of a flow: %v, want *InvalidArgument and a usable transaction", err)
	}
	h.wantUsed(t, "projects", 4)
	if n := h.count(t, `select sum(quantity)::bigint from usage_resources`); n != 1 {
		t.Errorf("the resource has %d units, want 1", n)
	}
	plans.mu.Lock()
	plans.info.Snapshot.Features = map[string]schemas.Limit{"projects": schemas.LimitOf(2)}
	plans.mu.Unlock()
	err = h.in(t, func(tx pgx.Tx) error { return h.CheckResource(t.Context(), tx, "w", "projects", project(1).ResourceID) })
	if err != nil {
		t.Errorf("a resource that can't be given back: %v, want it usable", err)
	}
	page, err := h.Resources(t.Context(), usage.ResourceQuery{WorkspaceID: "w", Feature: "projects"})
	if err != nil || len(page.Resources) != 1 || page.Resources[0].Locked {
		t.Errorf("the resources are %+v, %v, want one that is not locked", page.Resources, err)
	}
}
