package guard_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/headroomhq/headroom/enforcement/guard"
)

func TestAnIdleKeyIsForgotten(t *testing.T) {
	t.Parallel()
	lock := guard.NewProcessLock(guard.ProcessOptions[struct{}]{})
	key, err := guard.NewKey("org", "projects")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_ = lock.Run(t.Context(), key, func(context.Context, struct{}) error {
				if lock.Held() != 1 {
					t.Errorf("%d keys are remembered while one is held", lock.Held())
				}
				return errors.New("no")
			})
		})
	}
	all.Wait()
	if lock.Held() != 0 {
		t.Errorf("%d keys are remembered when nobody asks", lock.Held())
	}
}

// What cancelled a wait is told, beside that it was cancelled.
func TestTheCauseOfACancelledWaitIsTold(t *testing.T) {
	t.Parallel()
	lock := guard.NewProcessLock(guard.ProcessOptions[struct{}]{})
	key, err := guard.NewKey("org", "projects")
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("the server shuts down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	err = lock.Run(ctx, key, func(context.Context, struct{}) error {
		t.Error("a request that has ended gets the lock")
		return nil
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
		t.Errorf("got %v, want context.Canceled and the cause", err)
	}
	if lock.Held() != 0 {
		t.Errorf("%d keys are remembered", lock.Held())
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	tests := map[string][2]string{
		"oe:ws_Abc:seats": {"ws_Abc", "seats"},
		"oe:0f8fad5b-d9cb-469f-a165-70867728950e:s.A": {"0F8FAD5B-D9CB-469F-A165-70867728950E", "s.A"},
		"oe:0f8fad5bd9cb469fa16570867728950e:seats":   {"0f8fad5bd9cb469FA16570867728950E", "seats"},
		// Nearly a GUID is a name, and names are told apart by case.
		"oe:0F8FAD5B-D9CB-469F-A165-70867728950:seats": {"0F8FAD5B-D9CB-469F-A165-70867728950", "seats"},
	}
	for want, parts := range tests {
		key, err := guard.NewKey(parts[0], parts[1])
		if err != nil || key.String() != want || key.Organization() != parts[0] || key.Privilege() != parts[1] {
			t.Errorf("%q gives %q (%v), want %q and its parts as given", parts, key, err, want)
		}
	}
}
