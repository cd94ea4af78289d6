package usage_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// got is an answer, to be compared.
type got struct {
	Balance usage.Balance
	Err     error
}

func (h *house) once(t testing.TB, key string, c usage.Change) got {
	t.Helper()
	balance, err := h.ConsumeOnce(t.Context(), usage.Once{Scope: "test", Key: key}, c)
	return got{balance, typed(err)}
}

func (h *house) releaseOnce(t testing.TB, key string, c usage.Change) got {
	t.Helper()
	balance, err := h.ReleaseOnce(t.Context(), usage.Once{Scope: "test", Key: key}, c)
	return got{balance, typed(err)}
}

var sameLimit = cmp.Comparer(func(a, b schemas.Limit) bool { return a == b })

func TestARepeatedRequestGetsItsAnswerAgain(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 5, "emails": 5, "sso": -1}), plan("none", features{}))
	three := project(3)
	three.Quantity = 3
	asked := map[string]usage.Change{
		"fits": three, "does not fit": of("projects", 3), "flow": of("emails", 2), "not in the plan": of("seats", 1),
		"not counted": of("sso", 1), "unknown": of("saets", 1), "probe": of("projects", 0),
	}
	first := map[string]got{"fits": h.once(t, "fits", three)}
	for key, change := range asked {
		if key != "fits" {
			first[key] = h.once(t, key, change)
		}
	}
	released := h.releaseOnce(t, "release", of("emails", 1))
	refused := h.releaseOnce(t, "release nothing", of("saets", 1))

	// Everything is otherwise by now, and by another process.
	h.assign(t, "w", "none")
	other := openOn(t, h.pool, h.pool)
	for range 2 {
		for key, change := range asked {
			if diff := cmp.Diff(first[key], other.once(t, key, change), sameLimit); diff != "" {
				t.Errorf("%s (-first +again):\n%s", key, diff)
			}
		}
		if diff := cmp.Diff(released, other.releaseOnce(t, "release", of("emails", 1)), sameLimit); diff != "" {
			t.Errorf("a release (-first +again):\n%s", diff)
		}
		if diff := cmp.Diff(refused, other.releaseOnce(t, "release nothing", of("saets", 1)), sameLimit); diff != "" {
			t.Errorf("a refused release (-first +again):\n%s", diff)
		}
	}
	h.wantUsed(t, "projects", 3)
	h.wantUsed(t, "emails", 1)
	if !errors.As(first["does not fit"].Err, new(*usage.QuotaExceeded)) || first["fits"].Err != nil {
		t.Errorf("the first answers are %+v", first)
	}
}

func TestAKeyIsOfOneRequest(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 50, "seats": 50, "emails": 50}))
	h.once(t, "k", project(1))
	two, later, nobodys := project(1), project(1), project(1)
	two.Quantity = 2
	later.CreatedAt = later.CreatedAt.Add(time.Hour)
	nobodys.ResourceID = ""
	for name, answer := range map[string]got{
		"another quantity":      h.once(t, "k", two),
		"another age":           h.once(t, "k", later),
		"another resource":      h.once(t, "k", project(2)),
		"no resource":           h.once(t, "k", nobodys),
		"another feature":       h.once(t, "k", of("seats", 1)),
		"the other thing to do": h.releaseOnce(t, "k", project(1)),
	} {
		if diff := cmp.Diff(got{Err: &usage.KeyReused{Key: "k"}}, answer, sameLimit); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	h.wantUsed(t, "projects", 1)
	elsewhere := project(1)
	elsewhere.WorkspaceID = "v"
	if answer := h.once(t, "k", elsewhere); answer.Err != nil {
		t.Errorf("the key of another workspace: %v", answer.Err)
	}
	if _, err := h.ConsumeOnce(t.Context(), usage.Once{Scope: "other", Key: "k"}, of("emails", 1)); err != nil {
		t.Errorf("the key of another caller: %v", err)
	}
	for _, once := range []usage.Once{{Key: strings.Repeat("k", 256)}, {Key: "a\x00b"}, {Key: "\xff"}, {Scope: "\xff"}} {
		if _, err := h.ConsumeOnce(t.Context(), once, of("emails", 1)); !errors.As(err, new(*usage.InvalidArgument)) {
			t.Errorf("%q: %v", once, err)
		}
	}
}

func TestRequestsWithOneKeyAtOnceCountOnce(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 100}))
	doors := []*house{h, openOn(t, h.pool, h.pool), openOn(t, h.pool, h.pool)}
	var mu sync.Mutex
	answers := make(map[string]map[got]int)
	each(t, 90, func(i int) error {
		key := fmt.Sprintf("k%d", i%5)
		balance, err := doors[i%3].ConsumeOnce(t.Context(), usage.Once{Key: key}, of("projects", 2))
		mu.Lock()
		defer mu.Unlock()
		if answers[key] == nil {
			answers[key] = make(map[got]int)
		}
		answers[key][got{Balance: balance, Err: err}]++
		return err
	})
	for key, all := range answers {
		if len(all) != 1 {
			t.Errorf("%s got different answers: %v", key, all)
		}
	}
	h.wantUsed(t, "projects", 10)
	if n := h.count(t, `select count(*) from usage_requests where answer is not null`); n != 5 {
		t.Errorf("%d requests are kept with their answer, want 5", n)
	}
}

// hold locks a counter's row until the returned function is called.
func (h *house) hold(t *testing.T, feature string) (let func()) {
	t.Helper()
	tx, err := h.side.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback(context.WithoutCancel(t.Context())) })
	if _, err := tx.Exec(t.Context(), `select from usage_counters where workspace_id = 'w' and feature_key = $1 for update`, feature); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// until waits for something that another goroutine or the database is about to do.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	deadline := time.After(20 * time.Second)
	for !is() {
		select {
		case <-again.C:
		case <-deadline:
			t.Errorf("waited too long for %s", what) // a caller may be another goroutine
			return
		}
	}
}

// blocked reports whether so many statements wait for a lock.
func (h *house) blocked(t testing.TB, n int64) func() bool {
	return func() bool {
		var waiting int64
		err := h.side.QueryRow(t.Context(), `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`).Scan(&waiting)
		if err != nil {
			t.Error(err)
		}
		return waiting == n
	}
}

func TestThoseWhoWaitTogetherAreAnsweredOneByOne(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 10}))
	h.must(t, project(1))
	let := h.hold(t, "projects")
	var wait sync.WaitGroup
	wait.Go(func() { h.once(t, "", of("projects", 1)) })
	until(t, "the first one to wait for the row", h.blocked(t, 1))

	used := func(n int64) got { return got{Balance: usage.Balance{Used: n, Limit: schemas.LimitOf(10)}} }
	exceeded := func(used, requested int64) got {
		return got{Err: &usage.QuotaExceeded{WorkspaceID: "w", Feature: "projects", PlanKey: "free", Used: used, Limit: 10, Requested: requested}}
	}
	asked := []struct {
		key    string
		change usage.Change
		want   got
	}{
		{"a", of("projects", 7), used(9)},
		{"b", of("projects", 3), exceeded(9, 3)},
		{"c", project(1), used(10)},
		{"d", of("projects", 0), used(10)},
		{"c", project(1), used(10)},
		{"c", project(2), got{Err: &usage.KeyReused{Key: "c"}}},
		{"e", usage.Change{WorkspaceID: "w", Feature: "projects", Quantity: math.MaxInt64}, exceeded(10, math.MaxInt64)},
		{"", of("projects", 1), exceeded(10, 1)},
	}
	answers := make([]got, len(asked))
	for i, a := range asked {
		wait.Go(func() { answers[i] = h.once(t, a.key, a.change) })
		until(t, "the next one to queue", func() bool { return h.Waiting("w", "projects") == i+1 })
	}
	let()
	wait.Wait()
	for i, a := range asked {
		if diff := cmp.Diff(a.want, answers[i], sameLimit); diff != "" {
			t.Errorf("number %d (-want +got):\n%s", i, diff)
		}
	}
	h.wantUsed(t, "projects", 10)
	if n := h.count(t, `select quantity from usage_resources`); n != 2 {
		t.Errorf("the resource has %d units, want 2", n)
	}
	if n := h.count(t, `select count(distinct created_at) from usage_requests`); n != 1 {
		t.Errorf("the requests were answered in %d transactions, want 1", n)
	}
}

// Another change under a key that waits beside it does not spoil the repeated one.
func TestARepeatedRequestBesideAnotherUnderItsKeyGetsItsAnswer(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 10}))
	first := h.once(t, "k", of("projects", 2))
	let := h.hold(t, "projects")
	var wait sync.WaitGroup
	wait.Go(func() { h.once(t, "", of("projects", 1)) })
	until(t, "the first one to wait for the row", h.blocked(t, 1))
	answers := make([]got, 3)
	for i, quantity := range []int64{5, 2, 5} {
		wait.Go(func() { answers[i] = h.once(t, "k", of("projects", quantity)) })
		until(t, "the next one to queue", func() bool { return h.Waiting("w", "projects") == i+1 })
	}
	let()
	wait.Wait()
	reused := got{Err: &usage.KeyReused{Key: "k"}}
	if diff := cmp.Diff([]got{reused, first, reused}, answers, sameLimit); diff != "" {
		t.Errorf("the answers (-want +got):\n%s", diff)
	}
	h.wantUsed(t, "projects", 3)
}

func TestACallerWhoGoesIsToldWhatIsCertain(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 10}))
	h.must(t, of("projects", 1))
	let := h.hold(t, "projects")
	ctx, leave := context.WithCancel(t.Context())
	results := make(chan error, 2)
	ask := func(key string) {
		_, err := h.ConsumeOnce(ctx, usage.Once{Key: key}, of("projects", 2))
		results <- err
	}
	go ask("under way")
	until(t, "the first one to wait for the row", h.blocked(t, 1))
	go ask("queued")
	until(t, "the other one to queue", func() bool { return h.Waiting("w", "projects") == 1 })
	leave()
	var uncertain, nothing int
	for range 2 {
		switch err := <-results; {
		case !errors.Is(err, context.Canceled):
			t.Errorf("a caller who went: %v", err)
		case errors.Is(err, usage.ErrUnavailable):
			nothing++
		default:
			uncertain++
		}
	}
	if uncertain != 1 || nothing != 1 {
		t.Errorf("%d may be counted and %d are not, want one of each", uncertain, nothing)
	}
	let()
	balance, err := h.ConsumeOnce(t.Context(), usage.Once{Key: "under way"}, of("projects", 2))
	if err != nil || balance.Used != 3 {
		t.Errorf("the key tells %+v, %v, want 3 used", balance, err)
	}
	h.wantUsed(t, "projects", 3)
}

func TestOldKeysAreForgotten(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 100}))
	for i := range 7 {
		h.once(t, fmt.Sprintf("k%d", i), of("projects", 1))
	}
	if _, err := h.pool.Exec(t.Context(), `update usage_requests set created_at = now() - interval '25 hours' where key < 'k5'`); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{3, 2, 0} {
		n, err := h.Prune(t.Context(), time.Now().Add(-usage.KeepRequests), 3)
		if err != nil || n != want {
			t.Errorf("%d were forgotten, %v, want %d", n, err, want)
		}
	}
	h.once(t, "k0", of("projects", 1))
	h.once(t, "k6", of("projects", 1))
	h.wantUsed(t, "projects", 8)
}

func TestRunForgetsOldKeysUntilItsEnd(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 2000}))
	h.once(t, "new", of("projects", 1))
	_, err := h.pool.Exec(t.Context(), `insert into usage_requests (scope, workspace_id, key, fingerprint, created_at)
		select '', 'w', 'old' || n, '', now() - interval '25 hours' from generate_series(1, 1001) as n`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	schematest.Eventually(t, "the old keys are forgotten", func() bool {
		return h.count(t, `select count(*) from usage_requests`) == 1
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	h.once(t, "new", of("projects", 1))
	h.wantUsed(t, "projects", 1)
}
