package guardtest

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement/guard"
)

const (
	// patience is how long the suite waits for what must happen.
	patience = 20 * time.Second
	// width is how long act takes, so that guards which are not serialised meet.
	width     = time.Millisecond
	privilege = "projects"
)

// rig is a bench with a client on it, an organization and a counter of its own.
type rig[Tx any] struct {
	Bench[Tx]
	t            testing.TB
	plan         *plan
	client       *guard.Client[Tx]
	organization string
	counter      string
}

func newRig[Tx any](t testing.TB, h Harness[Tx], s Settings) *rig[Tx] {
	t.Helper()
	r := &rig[Tx]{Bench: h.Open(t, s), t: t, plan: newPlan()}
	r.fresh()
	client, err := guard.New(guard.Options[Tx]{Provider: r.plan, Lock: r.Lock})
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	r.client = client
	return r
}

// fresh takes another organization and another counter.
func (r *rig[Tx]) fresh() {
	r.organization, r.counter = "org_"+rand.Text(), "counter_"+rand.Text()
}

func (r *rig[Tx]) request(requested int64) guard.Request {
	return guard.Request{Organization: r.organization, Privilege: privilege, Requested: requested}
}

// callbacks count and add, as an application does.
func (r *rig[Tx]) callbacks(requested int64) guard.Callbacks[int64, Tx] {
	counter := r.counter
	return guard.Callbacks[int64, Tx]{
		Count: guard.Total(func(ctx context.Context, tx Tx) (int64, error) { return r.Count(ctx, tx, counter) }),
		Act: func(ctx context.Context, tx Tx) (int64, error) {
			pause(ctx)
			return requested, r.Add(ctx, tx, counter, requested)
		},
	}
}

func (r *rig[Tx]) guard(ctx context.Context, request guard.Request) (guard.Details, error) {
	_, details, err := guard.Guard(ctx, r.client, request, r.callbacks(request.Requested))
	return details, err
}

// proceeds checks that the key is free: an ordinary guard gets through.
func (r *rig[Tx]) proceeds(after string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	if _, err := r.guard(ctx, r.request(1)); err != nil {
		r.t.Errorf("after %s the next guard fails: %v", after, err)
	}
}

// stored checks what everybody sees.
func (r *rig[Tx]) stored(want int64, what string) {
	r.t.Helper()
	got, err := r.Stored(r.t.Context(), r.counter)
	if err != nil || got != want {
		r.t.Errorf("%s: the counter is at %d (%v), want %d", what, got, err, want)
	}
}

// holder is a guard that stays in act until it is told to go.
type holder struct {
	t    testing.TB
	goOn chan struct{}
	done chan error
	once sync.Once
}

// holds returns when a guard on the request is in act.
func (r *rig[Tx]) holds(request guard.Request) *holder {
	r.t.Helper()
	h := &holder{t: r.t, goOn: make(chan struct{}), done: make(chan error, 1)}
	var entering sync.Once // a lock that retries calls act again
	entered, c := make(chan struct{}), r.callbacks(request.Requested)
	go func() {
		_, _, err := guard.Guard(r.t.Context(), r.client, request, guard.Callbacks[int64, Tx]{
			Count: c.Count,
			Act: func(ctx context.Context, tx Tx) (int64, error) {
				entering.Do(func() { close(entered) })
				<-h.goOn
				return c.Act(ctx, tx)
			},
		})
		h.done <- err
	}()
	r.t.Cleanup(func() { h.once.Do(func() { close(h.goOn) }) })
	select {
	case <-entered:
	case err := <-h.done:
		r.t.Fatalf("a guard did not get to act: %v", err)
	case <-time.After(patience):
		r.t.Fatal("a guard did not get to act")
	}
	r.plan.drain()
	return h
}

// ends lets the holder go on, and checks that it succeeds.
func (h *holder) ends() {
	h.t.Helper()
	h.once.Do(func() { close(h.goOn) })
	if err := await(h.t, h.done, "the guard that held the key"); err != nil {
		h.t.Errorf("the guard that held the key fails: %v", err)
	}
}

// await is what comes from the channel, in time.
func await[V any](t testing.TB, from <-chan V, what string) V {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(patience):
		t.Fatalf("%s does not end", what)
		panic("unreachable")
	}
}

// pause is how long act takes.
func pause(ctx context.Context) {
	timer := time.NewTimer(width)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func exceeded(err error) bool {
	var e *guard.EntitlementLimitExceeded
	return errors.As(err, &e)
}
