package usage_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
)

func TestABatchIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 5, "seats": 5, "emails": 5}))
	all := func(changes ...usage.Change) (balances []usage.Balance, err error) {
		err = h.in(t, func(tx pgx.Tx) error {
			balances, err = h.ConsumeAll(t.Context(), tx, changes)
			return err
		})
		return balances, err
	}
	elsewhere := of("projects", 4)
	elsewhere.WorkspaceID = "v"
	balances, err := all(of("seats", 1), project(1), of("projects", 2), elsewhere, of("emails", 0), project(1))
	if err != nil {
		t.Fatal(err)
	}
	five := schemas.LimitOf(5)
	want := []usage.Balance{{Used: 1, Limit: five}, {Used: 4, Limit: five}, {Used: 4, Limit: five}, {Used: 4, Limit: five}, {Used: 0, Limit: five}, {Used: 4, Limit: five}}
	balances[4].ResetsAt = nil
	if diff := cmp.Diff(want, balances, sameLimit); diff != "" {
		t.Errorf("balances (-want +got):\n%s", diff)
	}
	if n := h.count(t, `select quantity from usage_resources where resource_id = 'p01'`); n != 2 {
		t.Errorf("the resource has %d units, want 2", n)
	}
	for name, changes := range map[string][]usage.Change{
		"the last one has no room":       {of("seats", 1), of("projects", 1), elsewhere},
		"together they have no room":     {of("seats", 1), of("projects", 1), of("projects", 1)},
		"one is not in the plan":         {of("seats", 1), of("nothing", 1)},
		"one is wrong":                   {of("seats", 1), of("seats", -1)},
		"more than can be added up":      {of("seats", 1), of("projects", math.MaxInt64), of("projects", math.MaxInt64)},
		"the probe after it has no room": {of("seats", 4), of("seats", 1), of("seats", 0)},
	} {
		if _, err := all(changes...); err == nil || errors.Is(err, usage.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
		h.wantUsed(t, "seats", 1)
		h.wantUsed(t, "projects", 4)
	}
	if none, err := all(); err != nil || len(none) != 0 {
		t.Errorf("a batch of nothing: %v, %v", none, err)
	}
}

func TestABatchThatIsOvertakenTakesItsPartBack(t *testing.T) {
	t.Parallel()
	for name, free := range map[string]int64{"by the last unit": 1, "by one of two units": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, plan("free", features{"projects": 5, "seats": 5}))
			h.must(t, of("seats", 5-free))
			tx, err := h.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback(context.WithoutCancel(t.Context()))
			if _, err := h.Consume(t.Context(), tx, of("seats", 1)); err != nil {
				t.Fatal(err)
			}
			result := make(chan error)
			go func() {
				result <- h.in(t, func(tx pgx.Tx) error {
					_, err := h.ConsumeAll(t.Context(), tx, []usage.Change{of("seats", 1), project(1)})
					return err
				})
			}()
			until(t, "the batch to wait for the row", h.blocked(t, 1))
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			err = <-result
			if refused := errors.As(err, new(*usage.QuotaExceeded)); refused != (free == 1) || !refused && err != nil {
				t.Errorf("with %d free: %v", free, err)
			}
			h.wantUsed(t, "seats", 5)
			h.wantUsed(t, "projects", free-1)
			if n := h.count(t, `select count(*) from usage_resources`); n != free-1 {
				t.Errorf("%d resources", n)
			}
		})
	}
}

func TestBatchesInAnyOrderNeverWaitForEachOther(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 100, "seats": 100, "emails": 100}))
	wins := each(t, 120, func(i int) error {
		changes := []usage.Change{of("projects", 1), of("seats", 1), of("emails", 1)}
		for j := range changes {
			changes[j].WorkspaceID = fmt.Sprintf("w%d", (i+j)%2)
		}
		k := i % 3
		changes = append(changes[k:], changes[:k]...)
		return pgx.BeginFunc(t.Context(), h.pool, func(tx pgx.Tx) error {
			_, err := h.ConsumeAll(t.Context(), tx, changes)
			return err
		})
	})
	if wins != 120 {
		t.Errorf("%d batches were counted, want all 120", wins)
	}
	if n := h.count(t, `select sum(count)::bigint from usage_counters`); n != 360 {
		t.Errorf("%d units, want 360", n)
	}
}
