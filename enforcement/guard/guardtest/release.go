package guardtest

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"testing"

	"github.com/headroomhq/headroom/enforcement/guard"
)

var (
	errCount = errors.New("count does not want to")
	errAct   = errors.New("act does not want to")
)

// releasedHoweverItEnds: the key is free after an error, a denial, a panic and Goexit, and
// the error and the panic reach the caller as they were.
func releasedHoweverItEnds[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{Connections: 2})
	for name, end := range r.ends() {
		got := r.run(r.request(1), end.callbacks)
		if end.err != nil && got.err != end.err { //nolint:errorlint // the requirement is that it is the very error
			t.Errorf("an error in %s reaches the caller as %v (%T), want it unchanged", name, got.err, got.err)
		}
		if got.panicked != end.panics {
			t.Errorf("a panic in %s goes on as %v, want %v", name, got.panicked, end.panics)
		}
		r.proceeds(name)
	}
	r.plan.set(0)
	if _, err := r.guard(t.Context(), r.request(1)); !exceeded(err) {
		t.Errorf("a guard without room gives %v, want *EntitlementLimitExceeded", err)
	}
	r.plan.set(1 << 40)
	r.proceeds("a denial")
}

// ending is a way in which a guard ends.
type ending[Tx any] struct {
	callbacks guard.Callbacks[int64, Tx]
	err       error
	panics    any
}

func (r *rig[Tx]) ends() map[string]ending[Tx] {
	counts := func(do func() error) guard.Callbacks[int64, Tx] {
		c := r.callbacks(1)
		c.Count = func(context.Context, Tx) (guard.Usage, error) { return guard.Usage{}, do() }
		return c
	}
	acts := func(do func() error) guard.Callbacks[int64, Tx] {
		c := r.callbacks(1)
		add := c.Act
		c.Act = func(ctx context.Context, tx Tx) (int64, error) {
			if _, err := add(ctx, tx); err != nil {
				return 0, err
			}
			return 0, do()
		}
		return c
	}
	fails := func(err error) func() error { return func() error { return err } }
	panics := func() error { panic("no more") }
	exits := func() error {
		runtime.Goexit()
		return nil
	}
	return map[string]ending[Tx]{
		"count":             {callbacks: counts(fails(errCount)), err: errCount},
		"act":               {callbacks: acts(fails(errAct)), err: errAct},
		"count, by a panic": {callbacks: counts(panics), panics: "no more"},
		"act, by a panic":   {callbacks: acts(panics), panics: "no more"},
		"count, by Goexit":  {callbacks: counts(exits)},
		"act, by Goexit":    {callbacks: acts(exits)},
	}
}

// outcome is how a guard ended.
type outcome struct {
	err      error
	panicked any
}

// run runs a guard in a goroutine, which it may end.
func (r *rig[Tx]) run(request guard.Request, c guard.Callbacks[int64, Tx]) outcome {
	r.t.Helper()
	done := make(chan outcome, 1)
	go func() {
		var got outcome
		defer func() {
			got.panicked = recover()
			done <- got
		}()
		_, _, got.err = guard.Guard(r.t.Context(), r.client, request, c)
	}()
	return await(r.t, done, "a guard")
}

// oneTransaction: count and act get the same tx, and others see nothing before the commit.
func oneTransaction[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{Connections: 2})
	var first any
	c := r.callbacks(3)
	type mark struct{}
	ctx := context.WithValue(t.Context(), mark{}, true)
	_, _, err := guard.Guard(ctx, r.client, r.request(3), guard.Callbacks[int64, Tx]{
		Count: func(ctx context.Context, tx Tx) (guard.Usage, error) {
			first = tx
			if ctx.Value(mark{}) == nil {
				t.Error("the context of count is not made of the request's")
			}
			return c.Count(ctx, tx)
		},
		Act: func(ctx context.Context, tx Tx) (int64, error) {
			if reflect.ValueOf(&tx).Elem().Comparable() && first != any(tx) {
				t.Errorf("act gets the transaction %v and count got %v, want the same", tx, first)
			}
			n, err := c.Act(ctx, tx)
			if inside, countErr := r.Count(ctx, tx, r.counter); countErr != nil || inside != 3 {
				t.Errorf("act added 3 and reads %d (%v) in its transaction", inside, countErr)
			}
			if h.Transactional {
				r.stored(0, "while act runs")
			}
			return n, err
		},
	})
	if err != nil {
		t.Errorf("a guard fails: %v", err)
	}
	r.stored(3, "after a guard of 3")
}

// nothingStored: what act did is gone when the guard fails, also because the request
// ended in act.
func nothingStored[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{Connections: 2})
	for name, end := range r.ends() {
		r.run(r.request(1), end.callbacks)
		r.stored(0, "after the end of "+name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := r.callbacks(1)
	_, _, err := guard.Guard(ctx, r.client, r.request(1), guard.Callbacks[int64, Tx]{
		Count: c.Count,
		Act: func(ctx context.Context, tx Tx) (int64, error) {
			defer cancel()
			return c.Act(ctx, tx)
		},
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a guard whose request ended in act gives %v, want context.Canceled", err)
	}
	r.stored(0, "after a request that ended in act")
	r.proceeds("a request that ended in act")
}

// swallowed: a transaction that was spoilt is no success.
func swallowed[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{Connections: 2})
	if r.Fail == nil {
		return
	}
	c := r.callbacks(1)
	_, _, err := guard.Guard(t.Context(), r.client, r.request(1), guard.Callbacks[int64, Tx]{
		Count: c.Count,
		Act: func(ctx context.Context, tx Tx) (int64, error) {
			n, err := c.Act(ctx, tx)
			if failure := r.Fail(ctx, tx); failure == nil {
				t.Error("Bench.Fail failed to fail")
			}
			return n, err
		},
	})
	if err == nil {
		t.Error("a guard whose transaction was spoilt, and whose act says nothing of it, succeeds")
	}
	r.stored(0, "after a spoilt transaction")
	r.proceeds("a spoilt transaction")
}
