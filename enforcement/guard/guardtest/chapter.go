package guardtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headroomhq/headroom/enforcement/guard"
)

// pureCheck: RequireWithin takes no lock, and two of them do not see each other.
func pureCheck[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{})
	r.plan.set(5)
	holding := r.holds(r.request(1))
	for range 2 {
		details, err := r.client.RequireWithin(t.Context(), r.request(1), guard.Usage{Total: 4})
		if err != nil || !details.Allowed || details.Domain != "" {
			t.Errorf("a pure check of 1 beside 4 of 5 gives %+v, %v; want it allowed, and no lock", details, err)
		}
	}
	if _, err := r.client.RequireWithin(t.Context(), r.request(1), guard.Usage{Total: 5}); !exceeded(err) {
		t.Errorf("a pure check of 1 beside 5 of 5 gives %v, want *EntitlementLimitExceeded", err)
	}
	holding.ends()
}

// orderOfSteps: lock, resolve, count, check, act; and on a denial no act.
func orderOfSteps[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{})
	r.plan.set(2)
	var mu sync.Mutex
	var steps []string
	step := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		steps = append(steps, name)
	}
	client, err := guard.New(guard.Options[Tx]{Provider: told{r.plan, step}, Lock: toldLock[Tx]{r.Lock, step}})
	if err != nil {
		t.Fatal(err)
	}
	c := r.callbacks(1)
	callbacks := guard.Callbacks[string, Tx]{
		Count: func(ctx context.Context, tx Tx) (guard.Usage, error) {
			step("count")
			return c.Count(ctx, tx)
		},
		Act: func(ctx context.Context, tx Tx) (string, error) {
			step("act")
			_, err := c.Act(ctx, tx)
			return "made", err
		},
	}
	made, details, err := guard.Guard(t.Context(), client, r.request(1), callbacks)
	if err != nil || made != "made" || !details.Allowed || details.PlanKey != "pro" || details.Usage.Total != 0 || *details.Remaining != 1 {
		t.Errorf("a guard with room gives %q, %+v, %v; want act's result, the details, and 1 remaining", made, details, err)
	}
	want := []string{"resolve", "lock", "resolve", "count", "act", "release"}
	if !slices.Equal(steps, want) {
		t.Errorf("the steps are %v, want %v", steps, want)
	}
	steps = nil
	made, details, err = guard.Guard(t.Context(), client, r.request(2), callbacks)
	var denied *guard.EntitlementLimitExceeded
	if !errors.As(err, &denied) || made != "" || details.Allowed {
		t.Fatalf("2 beside 1 of 2 gives %q, %+v, %v; want *EntitlementLimitExceeded", made, details, err)
	}
	if denied.Limit != 2 || denied.Current != 1 || denied.Requested != 2 || denied.Remaining != 1 || denied.Details.Domain != r.Lock.Domain() {
		t.Errorf("the error says %+v; want limit 2, current 1, requested 2, remaining 1 and the lock's domain", denied)
	}
	if want := []string{"resolve", "lock", "resolve", "count", "release"}; !slices.Equal(steps, want) {
		t.Errorf("the steps of a denial are %v, want %v", steps, want)
	}
	r.stored(1, "after one guard and one denial")
}

// told is a provider that tells when it is asked, and toldLock a lock.
type told struct {
	guard.Provider
	step func(string)
}

func (p told) Resolve(ctx context.Context, organization, privilege string) (guard.Resolution, error) {
	p.step("resolve")
	return p.Provider.Resolve(ctx, organization, privilege)
}

type toldLock[Tx any] struct {
	guard.Lock[Tx]
	step func(string)
}

func (l toldLock[Tx]) Run(ctx context.Context, key guard.Key, fn func(context.Context, Tx) error) error {
	defer l.step("release")
	return l.Lock.Run(ctx, key, func(ctx context.Context, tx Tx) error {
		l.step("lock")
		return fn(ctx, tx)
	})
}

// The numbers that the races are run with. beyond is how many guards there are more
// than there is room for.
const beyond = 12

func races() []job {
	var all []job
	for _, limit := range []int64{0, 1, 5, 50} {
		for _, requested := range []int64{1, 3} {
			all = append(all, job{Limit: limit, Requested: requested, Guards: limit/requested + beyond})
		}
	}
	return all
}

// linearizable: of many guards at once exactly those succeed that there is room for.
func linearizable[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{Connections: 8, LockTimeout: patience})
	for _, j := range races() {
		r.fresh()
		r.judge(j, r.race(t.Context(), j))
	}
}

// judge compares what came of a race with what had to.
func (r *rig[Tx]) judge(j job, got ...result) {
	r.t.Helper()
	var sum result
	for _, one := range got {
		sum.Allowed += one.Allowed
		sum.Denied += one.Denied
		sum.Faults = append(sum.Faults, one.Faults...)
	}
	name := fmt.Sprintf("limit %d, %d guards of %d each", j.Limit, j.Guards*int64(len(got)), j.Requested)
	if len(sum.Faults) > 0 {
		r.t.Errorf("%s: %d fail with neither success nor denial, such as: %s", name, len(sum.Faults), sum.Faults[0])
	}
	if want := j.Limit / j.Requested; sum.Allowed != want {
		r.t.Errorf("%s: %d succeed and %d are denied, want %d to succeed", name, sum.Allowed, sum.Denied, want)
	}
	r.stored(j.Limit/j.Requested*j.Requested, name)
}

// keyHasNoSubject: subjects and resources of one organization are one after the other.
func keyHasNoSubject[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{Connections: 8, LockTimeout: patience})
	r.plan.set(5)
	var here, most, allowed atomic.Int64
	var all sync.WaitGroup
	for i := range 24 {
		request := r.request(1)
		request.Subject = fmt.Sprintf("user_%d", i%2)
		request.Resource = fmt.Sprintf("team_%d", i%3)
		all.Go(func() {
			c := r.callbacks(1)
			_, _, err := guard.Guard(t.Context(), r.client, request, guard.Callbacks[int64, Tx]{
				Count: func(ctx context.Context, tx Tx) (guard.Usage, error) {
					for n := here.Add(1); n > most.Load(); {
						most.Store(n)
					}
					defer here.Add(-1)
					pause(ctx)
					return c.Count(ctx, tx)
				},
				Act: c.Act,
			})
			if err == nil {
				allowed.Add(1)
			}
		})
	}
	all.Wait()
	if most.Load() != 1 {
		t.Errorf("%d guards of one organization counted at a time, want 1: subject and resource are not in the key", most.Load())
	}
	if allowed.Load() != 5 {
		t.Errorf("two subjects were allowed %d together, want the 5 that they share", allowed.Load())
	}
	r.stored(5, "after guards of two subjects")
}

// defaultIsInProcess: a client without a lock has one of this process.
func defaultIsInProcess[Tx any](t testing.TB, _ Harness[Tx]) {
	client, err := guard.New(guard.Options[struct{}]{Provider: newPlan()})
	if err != nil {
		t.Fatal(err)
	}
	if got := client.Domain(); !strings.HasPrefix(got, "process:") {
		t.Errorf("the default lock has the domain %q, want one of this process", got)
	}
}

// domainIsDeclared: the lock names its domain, and the details carry it.
func domainIsDeclared[Tx any](t testing.TB, h Harness[Tx]) {
	r := newRig(t, h, Settings{})
	domain := r.Lock.Domain()
	kind, name, _ := strings.Cut(domain, ":")
	if kind != "process" && kind != "database" || name == "" {
		t.Errorf("the domain is %q, want process: or database: and a name", domain)
	}
	if h.Process != nil && kind == "process" {
		t.Errorf("the domain is %q, and the harness has another process to exclude", domain)
	}
	details, err := r.guard(t.Context(), r.request(1))
	if err != nil || details.Domain != domain || r.Lock.Domain() != domain {
		t.Errorf("the details of a guard have the domain %q (%v), want %q", details.Domain, err, domain)
	}
	r.plan.set(0)
	if details, err = r.guard(t.Context(), r.request(1)); !exceeded(err) || details.Domain != domain {
		t.Errorf("the details of a denial have the domain %q (%v), want %q", details.Domain, err, domain)
	}
}
