package guardtest

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/schemas"
)

const shortWait = 300 * time.Millisecond

// keysAreSeparate: another organization and another privilege do not wait.
func keysAreSeparate[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{Connections: 4})
	holding := r.holds(r.request(1))
	others := map[string]guard.Request{
		"another organization": {Organization: r.organization + "_2", Privilege: privilege, Requested: 1},
		"another privilege":    {Organization: r.organization, Privilege: privilege + "_2", Requested: 1},
	}
	for name, request := range others {
		// A lock that takes both for one would only end with the holder.
		ctx, cancel := context.WithTimeout(t.Context(), patience/4)
		r.counter += "_2"
		if _, err := r.guard(ctx, request); err != nil {
			t.Errorf("%s does not get through while the key is held: %v", name, err)
		}
		cancel()
	}
	holding.ends()
}

// caseOfAGUID: both ways to write one organization are one lock.
func caseOfAGUID[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{LockTimeout: shortWait, Connections: 4})
	upper := r.request(1)
	upper.Organization = "0F8FAD5B-D9CB-469F-A165-70867728950E"
	lower := upper
	lower.Organization = strings.ToLower(upper.Organization)
	holding := r.holds(upper)
	var late *guard.LockTimeout
	if _, err := r.guard(t.Context(), lower); !errors.As(err, &late) {
		t.Errorf("the same GUID in lower case gives %v while the key is held, want *LockTimeout", err)
	}
	holding.ends()
}

// impossibleKeys: what would lock nothing, or the wrong thing, is refused before the lock.
func impossibleKeys[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{})
	for name, part := range map[string]string{
		"empty": "", "with the separator": "a:b", "with NUL": "a\x00b", "not UTF-8": "a\xffb", "too long": strings.Repeat("a", 256),
	} {
		for field, request := range map[string]guard.Request{
			"organization": {Organization: part, Privilege: privilege, Requested: 1},
			"privilege":    {Organization: r.organization, Privilege: part, Requested: 1},
		} {
			var invalid *guard.InvalidArgument
			if _, err := r.guard(t.Context(), request); !errors.As(err, &invalid) || invalid.Field != field {
				t.Errorf("an %s that is %s gives %v, want an *InvalidArgument of it", field, name, err)
			}
		}
	}
	r.stored(0, "after refused keys")
}

// boundary: exactly the limit fits, one more does not, and no number overflows.
func boundary[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{})
	r.plan.set(5)
	steps := []struct {
		requested int64
		fits      bool
	}{{6, false}, {math.MaxInt64, false}, {2, true}, {4, false}, {3, true}, {1, false}, {0, true}, {math.MaxInt64, false}}
	for _, s := range steps {
		if _, err := r.guard(t.Context(), r.request(s.requested)); exceeded(err) == s.fits || s.fits && err != nil {
			t.Errorf("a request of %d gives %v, want that it fits: %t", s.requested, err, s.fits)
		}
	}
	r.stored(5, "after what fits")
	r.plan.set(3)
	if _, err := r.guard(t.Context(), r.request(0)); !exceeded(err) {
		t.Errorf("a probe beside 5 of 3 gives %v, want *EntitlementLimitExceeded", err)
	}
	var invalid *guard.InvalidArgument
	if _, err := r.guard(t.Context(), r.request(-1)); !errors.As(err, &invalid) {
		t.Errorf("a request of -1 gives %v, want *InvalidArgument", err)
	}
	r.plan.mu.Lock()
	r.plan.resolution.Limit = schemas.Unlimited
	r.plan.mu.Unlock()
	details, err := r.guard(t.Context(), r.request(1))
	if err != nil || details.Reason != guard.ReasonUnlimited || details.Usage.Total != 5 || details.Remaining != nil {
		t.Errorf("a guard without a limit gives %+v, %v; want it allowed with the usage of 5", details, err)
	}
}

// waiter starts a guard that has to wait, and returns when it has asked for the limit
// the first time, which is right before the lock.
func (r *rig[Tx]) waiter(ctx context.Context, counted chan<- struct{}) <-chan error {
	r.t.Helper()
	c, done := r.callbacks(1), make(chan error, 1)
	request := r.request(1)
	go func() {
		_, _, err := guard.Guard(ctx, r.client, request, guard.Callbacks[int64, Tx]{
			Count: func(ctx context.Context, tx Tx) (guard.Usage, error) {
				select {
				case counted <- struct{}{}:
				default:
				}
				return c.Count(ctx, tx)
			},
			Act: c.Act,
		})
		done <- err
	}()
	await(r.t, r.plan.asked, "the question for the limit")
	return done
}

// limitAfterTheWait: a limit that changes while a guard waits counts as it then is.
func limitAfterTheWait[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{Connections: 4})
	r.plan.set(2)
	holding := r.holds(r.request(1))
	done := r.waiter(t.Context(), make(chan struct{}, 1))
	r.plan.set(1)
	holding.ends()
	if err := await(t, done, "the guard that waited"); !exceeded(err) {
		t.Errorf("the limit fell to what is used while a guard waited, and it gives %v, want *EntitlementLimitExceeded", err)
	}
	r.stored(1, "after the wait")
}

// cancelledWait: a request that ends while it waits ends the wait, and nothing else.
func cancelledWait[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{Connections: 4})
	holding := r.holds(r.request(1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	counted := make(chan struct{}, 1)
	done := r.waiter(ctx, counted)
	cancel()
	if err := await(t, done, "the wait of a request that has ended"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait gives %v, want context.Canceled", err)
	}
	if len(counted) > 0 {
		t.Error("a guard whose request ended while it waited counted")
	}
	holding.ends()
	r.proceeds("a cancelled wait")
	r.stored(2, "after a cancelled wait")
}

// tooLongWait: the lock's own patience is a *LockTimeout, and the key is none the worse.
func tooLongWait[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{Connections: 4, LockTimeout: shortWait})
	holding := r.holds(r.request(1))
	var late *guard.LockTimeout
	if _, err := r.guard(t.Context(), r.request(1)); !errors.As(err, &late) {
		t.Errorf("a wait of more than %s gives %v, want *LockTimeout", shortWait, err)
	} else if late.Domain != r.Lock.Domain() || late.Waited < shortWait/2 {
		t.Errorf("the timeout says %+v, want the lock's domain and how long it waited", late)
	}
	holding.ends()
	r.proceeds("a wait that took too long")
	r.stored(2, "after a wait that took too long")
}

// nested: a guard inside of a guard would wait for itself.
func nested[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{Connections: 2})
	c := r.callbacks(1)
	_, _, err := guard.Guard(t.Context(), r.client, r.request(1), guard.Callbacks[int64, Tx]{
		Count: c.Count,
		Act: func(ctx context.Context, tx Tx) (int64, error) {
			for _, organization := range []string{r.organization, r.organization + "_2"} {
				request := r.request(1)
				request.Organization = organization
				if _, err := r.guard(ctx, request); !errors.Is(err, guard.ErrNested) {
					t.Errorf("a guard inside of a guard gives %v, want ErrNested", err)
				}
			}
			return c.Act(ctx, tx)
		},
	})
	if err != nil {
		t.Errorf("the outer guard fails: %v", err)
	}
	r.stored(1, "after the outer guard")
}

// oneConnection: guards take one connection each and wait for no second one.
func oneConnection[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{Connections: 1, LockTimeout: patience})
	j := job{Limit: 5, Requested: 1, Guards: 5 + beyond}
	r.judge(j, r.race(t.Context(), j))
}
