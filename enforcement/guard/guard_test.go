package guard_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/schemas"
)

// told is a lock that counts how often it was asked.
type told struct {
	guard.Lock[struct{}]
	runs int
}

func (l *told) Run(ctx context.Context, key guard.Key, fn func(context.Context, struct{}) error) error {
	l.runs++
	return l.Lock.Run(ctx, key, fn)
}

func tells() *told {
	return &told{Lock: guard.NewProcessLock(guard.ProcessOptions[struct{}]{})}
}

// counting counts that much, and act notes that it ran.
func counting(usage guard.Usage, acted *bool) guard.Callbacks[string, struct{}] {
	return guard.Callbacks[string, struct{}]{
		Count: func(context.Context, struct{}) (guard.Usage, error) { return usage, nil },
		Act: func(context.Context, struct{}) (string, error) {
			*acted = true
			return "made", nil
		},
	}
}

func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

func TestWhatIsWrongWithoutTheLockNeverAsksForIt(t *testing.T) {
	t.Parallel()
	answers := func(r guard.Resolution, err error) *plan { return &plan{answer: r, err: err} }
	one := schemas.LimitOf(1)
	tests := map[string]struct {
		plan *plan
		want func(error) bool
	}{
		"a privilege that is on or off": {answers(guard.Resolution{Kind: guard.KindBoolean}, nil), is[*guard.TypeMismatch]},
		"a privilege that is a value":   {answers(guard.Resolution{Kind: guard.KindValue}, nil), is[*guard.TypeMismatch]},
		"a privilege of no kind":        {answers(guard.Resolution{}, nil), is[*guard.TypeMismatch]},
		"a privilege nobody knows":      {answers(guard.Resolution{}, &guard.UnknownPrivilege{Privilege: "x"}), is[*guard.UnknownPrivilege]},
		"a plan without the privilege":  {answers(guard.Resolution{}, &guard.NotEntitled{Privilege: "x"}), is[*guard.NotEntitled]},
		"a provider that is away":       {answers(guard.Resolution{}, errors.New("away")), is[*guard.ProviderUnavailable]},
		"a cap for each of nobody": {
			answers(guard.Resolution{Kind: guard.KindLimit, PerSubject: &one}, nil), is[*guard.InvalidArgument],
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lock, acted := tells(), false
			client := newClient[struct{}](t, tc.plan, lock)
			_, details, err := guard.Guard(t.Context(), client, request("org"), counting(guard.Usage{}, &acted))
			if !tc.want(err) || details.Allowed {
				t.Errorf("got %v (%T), %+v", err, err, details)
			}
			if lock.runs != 0 || acted {
				t.Errorf("the lock was asked %d times, act ran: %t", lock.runs, acted)
			}
			if _, err := client.RequireWithin(t.Context(), request("org"), guard.Usage{}); !tc.want(err) {
				t.Errorf("the pure check gives %v", err)
			}
		})
	}
}

func TestEveryCapHasToHold(t *testing.T) {
	t.Parallel()
	number := func(n int64) *int64 { return &n }
	two, none := schemas.LimitOf(2), schemas.Unlimited
	tests := map[string]struct {
		subject, resource *schemas.Limit
		usage             guard.Usage
		scope             guard.Scope
		invalid           string
	}{
		"room everywhere":                   {&two, &two, guard.Usage{Total: 9, Subject: number(1), Resource: number(1)}, "", ""},
		"none in the pool":                  {&two, &two, guard.Usage{Total: 10, Subject: number(1), Resource: number(1)}, guard.ScopeOrganization, ""},
		"none for the subject":              {&two, &two, guard.Usage{Total: 9, Subject: number(2), Resource: number(1)}, guard.ScopeSubject, ""},
		"none for the resource":             {&two, &two, guard.Usage{Total: 9, Subject: number(1), Resource: number(2)}, guard.ScopeResource, ""},
		"a cap without an end":              {&none, nil, guard.Usage{Total: 9, Subject: number(9)}, "", ""},
		"parts that nobody caps":            {nil, nil, guard.Usage{Total: 9, Subject: number(9), Parts: map[string]int64{"eu": 9, "us": 9}}, "", ""},
		"a part that was not counted":       {&two, nil, guard.Usage{Total: 1}, "", "subject"},
		"a negative total":                  {nil, nil, guard.Usage{Total: -1}, "", "total"},
		"a negative part":                   {nil, nil, guard.Usage{Total: 1, Parts: map[string]int64{"eu": -1}}, "", "part eu"},
		"a part that is more than all":      {nil, nil, guard.Usage{Total: 1, Resource: number(2)}, "", "resource"},
		"a missing part, where all is full": {nil, &two, guard.Usage{Total: 10}, "", "resource"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := limited(10)
			p.answer.PerSubject, p.answer.PerResource = tc.subject, tc.resource
			r, acted := request("org"), false
			r.Subject, r.Resource = "ann", "team"
			_, details, err := guard.Guard(t.Context(), newClient[struct{}](t, p, tells()), r, counting(tc.usage, &acted))
			var exceeded *guard.EntitlementLimitExceeded
			var invalid *guard.InvalidUsage
			switch {
			case tc.invalid != "":
				if !errors.As(err, &invalid) || invalid.Field != tc.invalid {
					t.Errorf("got %v, want an *InvalidUsage of %s", err, tc.invalid)
				}
			case tc.scope != "":
				if !errors.As(err, &exceeded) || exceeded.Scope != tc.scope {
					t.Errorf("got %v, want that the limit of the %s is exceeded", err, tc.scope)
				}
			case err != nil:
				t.Errorf("got %v, want it allowed", err)
			}
			if allowed := tc.scope == "" && tc.invalid == ""; details.Allowed != allowed || acted != allowed {
				t.Errorf("allowed %t and act ran %t, want %t", details.Allowed, acted, allowed)
			}
			if diff := cmp.Diff(tc.usage, details.Usage); diff != "" {
				t.Errorf("the details have another usage (-want +got):\n%s", diff)
			}
		})
	}
}

// A guard that does not know the limit while it holds the lock lets go, and allows nothing.
func TestAProviderThatFailsInsideTheLock(t *testing.T) {
	t.Parallel()
	p, acted := limited(5), false
	p.block = 2
	client, err := guard.New(guard.Options[struct{}]{Provider: p, ResolveTimeout: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = guard.Guard(t.Context(), client, request("org"), counting(guard.Usage{}, &acted))
	var away *guard.ProviderUnavailable
	if !errors.As(err, &away) || !away.Outage || acted {
		t.Errorf("got %v, act ran: %t; want *ProviderUnavailable for an outage", err, acted)
	}
	p.block = 0
	if _, _, err := guard.Guard(t.Context(), client, request("org"), counting(guard.Usage{}, &acted)); err != nil || !acted {
		t.Errorf("the next guard gives %v", err)
	}
}

func TestAFallbackIsForOutagesAlone(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err      error
		fallback bool
	}{
		"too slow":                {context.DeadlineExceeded, true},
		"the plan keeps changing": {errStalePlan, true},
		"an outage by name":       {&guard.ProviderUnavailable{Outage: true}, true},
		"a broken answer":         {errors.New("decode snapshot: limit is missing"), false},
		"no outage by name":       {&guard.ProviderUnavailable{Cause: errors.New("bad token")}, false},
		"a wrong password":        {wrongPassword, false},
		"a shutdown":              {shutdown, true},
		"an unknown privilege":    {&guard.UnknownPrivilege{}, false},
		"a refusal":               {&guard.NotEntitled{}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := guard.New(guard.Options[struct{}]{
				Provider: &plan{err: tc.err}, Fallbacks: map[string]schemas.Limit{"projects": schemas.LimitOf(1)},
			})
			if err != nil {
				t.Fatal(err)
			}
			acted := false
			_, details, err := guard.Guard(t.Context(), client, request("org"), counting(guard.Usage{}, &acted))
			if (err == nil) != tc.fallback || acted != tc.fallback {
				t.Errorf("got %v, act ran: %t; want the fallback: %t", err, acted, tc.fallback)
			}
			if tc.fallback && (details.Source != guard.SourceFallback || !details.Stale) {
				t.Errorf("the details say %+v; want that it is the fallback", details)
			}
			_, _, err = guard.Guard(t.Context(), client, request("org"), counting(guard.Usage{Total: 1}, &acted))
			if tc.fallback != is[*guard.EntitlementLimitExceeded](err) {
				t.Errorf("at the fallback's limit: %v", err)
			}
			other := request("org")
			other.Privilege = "seats"
			if _, _, err = guard.Guard(t.Context(), client, other, counting(guard.Usage{}, &acted)); err == nil {
				t.Error("a privilege without a fallback is allowed")
			}
		})
	}
}

// locked is what knows locked resources.
type locked map[string]error

func (l locked) CheckResource(_ context.Context, _ struct{}, _, _, resource string) error {
	return l[resource]
}

func TestALockedResourceIsRefusedBeforeTheCount(t *testing.T) {
	t.Parallel()
	errLocked, counted := errors.New("locked since a downgrade"), 0
	client, err := guard.New(guard.Options[struct{}]{Provider: limited(5), Resources: locked{"old": errLocked}})
	if err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[string]error{"old": errLocked, "new": nil, "": nil} {
		r := request("org")
		r.Resource = resource
		_, _, err := guard.Guard(t.Context(), client, r, guard.Callbacks[int, struct{}]{
			Count: func(context.Context, struct{}) (guard.Usage, error) {
				counted++
				return guard.Usage{}, nil
			},
			Act: func(context.Context, struct{}) (int, error) { return 1, nil },
		})
		if err != want { //nolint:errorlint // it has to be the very error
			t.Errorf("resource %q: %v, want %v", resource, err, want)
		}
	}
	if counted != 2 {
		t.Errorf("%d guards counted, want the 2 whose resource is not locked", counted)
	}
}

func TestOptionsAndCallbacksThatCannotWork(t *testing.T) {
	t.Parallel()
	if _, err := guard.New(guard.Options[struct{}]{}); err == nil {
		t.Error("a client without a provider is made")
	}
	if _, err := guard.New(guard.Options[any]{Provider: limited(1)}); err == nil {
		t.Error("a client whose callbacks would get a nil transaction is made")
	}
	client := newClient[struct{}](t, limited(1), nil)
	if _, _, err := guard.Guard(t.Context(), client, request("org"), guard.Callbacks[int, struct{}]{}); !is[*guard.InvalidArgument](err) {
		t.Errorf("a guard without callbacks gives %v", err)
	}
	long := request("org")
	long.Subject = "a\x00"
	acted := false
	if _, _, err := guard.Guard(t.Context(), client, long, counting(guard.Usage{}, &acted)); !is[*guard.InvalidArgument](err) || acted {
		t.Errorf("a subject with NUL gives %v", err)
	}
}

// idler is a lock that forgets its work.
type idler struct{}

func (idler) Domain() string { return "process:idler" }

func (idler) Run(context.Context, guard.Key, func(context.Context, struct{}) error) error { return nil }

func TestALockThatRunsNothingIsNoSuccess(t *testing.T) {
	t.Parallel()
	acted := false
	_, _, err := guard.Guard(t.Context(), newClient[struct{}](t, limited(1), idler{}), request("org"), counting(guard.Usage{}, &acted))
	if !is[*guard.LockUnavailable](err) {
		t.Errorf("got %v, want *LockUnavailable", err)
	}
}

// What act leaves running keeps the context, and is inside of nothing any more.
func TestAGuardAfterTheGuardIsNotNested(t *testing.T) {
	t.Parallel()
	client, acted := newClient[struct{}](t, limited(5), nil), false
	var left context.Context
	callbacks := counting(guard.Usage{}, &acted)
	callbacks.Act = func(ctx context.Context, _ struct{}) (string, error) {
		left = ctx
		return "", nil
	}
	if _, _, err := guard.Guard(t.Context(), client, request("org"), callbacks); err != nil {
		t.Fatal(err)
	}
	if _, _, err := guard.Guard(left, client, request("org"), counting(guard.Usage{}, &acted)); err != nil || !acted {
		t.Errorf("a guard with the context of one that has ended gives %v", err)
	}
}
