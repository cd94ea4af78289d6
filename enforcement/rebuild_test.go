package enforcement_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
)

// stream is a watermark whose streams hold decisions, and whose ledger is as far behind
// as a test wants.
type stream struct {
	mu     sync.Mutex
	behind bool
	asked  func() // unless nil, what happens while it is asked
}

func (s *stream) set(behind bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = behind
}

func (s *stream) Settled(ctx context.Context, _ string) (enforcement.Settled, error) {
	s.mu.Lock()
	behind, asked := s.behind, s.asked
	s.mu.Unlock()
	if asked != nil {
		asked()
	}
	if behind {
		<-ctx.Done()
		return enforcement.Settled{}, ctx.Err()
	}
	return enforcement.Settled{Workspace: true, Anybody: true}, nil
}

// forgetful is a house of one unit and one slot whose Redis is about to lose its memory,
// with one execution admitted, and what the ledger will know of it.
func forgetful(t *testing.T, fence time.Duration) (*house, *stream, enforcement.Usage) {
	t.Helper()
	s := &stream{}
	h := newHouse(t, unlimited(func(l *schemas.Limits) {
		l.MaxExecutions, l.MaxConcurrentExecutions = schemas.LimitOf(1), schemas.LimitOf(1)
	}), func(o *enforcement.Options) { o.Watermark, o.RebuildFence = s, fence })
	d := h.admit(t, ask("a", "1"))
	return h, s, enforcement.Usage{Used: 1, Peak: 1, Leases: []enforcement.Lease{{
		ExecutionID: "a", ExpiresAt: *d.LeaseExpiresAt, UsageEpoch: "epoch-1", AdmittedAt: d.DecidedAt,
	}}}
}

func (d *database) knows(u enforcement.Usage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = map[string]enforcement.Usage{"epoch-1": u}
}

// forget has Redis lose everything; age has it come back as another primary, with what
// it knew.
func (h *house) forget(t testing.TB) {
	t.Helper()
	if err := h.redis.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

func (h *house) age(t testing.TB) {
	t.Helper()
	if err := h.redis.Set(t.Context(), prefix+":epoch", "another-primary 1", 0).Err(); err != nil {
		t.Fatal(err)
	}
}

func mustBeRebuilding(t testing.TB, h *house, r enforcement.Request) time.Duration {
	t.Helper()
	got := h.Admit(t.Context(), []enforcement.Request{r})[0]
	wait, is := errors.AsType[*enforcement.Rebuilding](got.Err)
	if !is || !errors.Is(got.Err, enforcement.ErrUnavailable) {
		t.Fatalf("%+v, want to be told to come again", got)
	}
	return wait.After
}

func TestNothingIsAdmittedUntilWhatWasDecidedBeforeALossIsPublished(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*house, testing.TB){"flushed": (*house).forget, "another primary": (*house).age} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const fence = 700 * time.Millisecond
			h, _, later := forgetful(t, fence)
			lose(h, t)
			lost := time.Now()
			if wait := mustBeRebuilding(t, h, ask("b", "1")); wait > fence || wait < fence/4 {
				t.Errorf("told to come again in %s, want what is left of %s", wait, fence)
			}
			h.usage.knows(later) // it was under way, and is published within the fence
			if d := h.admit(t, ask("b", "1")); len(d.Exhausted) != 2 {
				t.Errorf("exhausted %v, want both limits held by what was under way", d.Exhausted)
			}
			if took := time.Since(lost); took < fence {
				t.Errorf("decided %s after the loss, within the fence of %s", took, fence)
			}
		})
	}
}

func TestALossWaitsForTheLedgerToCatchUp(t *testing.T) {
	t.Parallel()
	h, s, later := forgetful(t, testFence)
	s.set(true)
	h.forget(t)
	for range 5 {
		wait := mustBeRebuilding(t, h, ask("b", "1"))
		<-time.After(wait)
	}
	h.usage.knows(later)
	s.set(false)
	if d := h.admit(t, ask("b", "1")); len(d.Exhausted) != 2 {
		t.Errorf("exhausted %v, want both limits held by what the ledger has caught up with", d.Exhausted)
	}
}

func TestWhatAnEarlierPrimaryAnsweredCountsOnlyIfTheLedgerKnows(t *testing.T) {
	t.Parallel()
	t.Run("unheard", func(t *testing.T) {
		t.Parallel()
		h, _, _ := forgetful(t, testFence)
		h.age(t)
		if d := h.admit(t, ask("b", "1")); !d.Allowed || d.Used != 1 {
			t.Errorf("code %d, used %d, want the unit that nobody heard of", d.Code, d.Used)
		}
		if d := h.admit(t, ask("a", "1")); d.Allowed || d.Replayed {
			t.Errorf("allowed %v, replayed %v, want it judged anew", d.Allowed, d.Replayed)
		}
	})
	t.Run("published", func(t *testing.T) {
		t.Parallel()
		h, _, known := forgetful(t, testFence)
		denied := h.admit(t, ask("b", "1"))
		h.usage.knows(known)
		h.age(t)
		if d := h.admit(t, ask("a", "2")); !d.Allowed || !d.Replayed {
			t.Errorf("allowed %v, replayed %v, want it repeated", d.Allowed, d.Replayed)
		}
		if d := h.admit(t, ask("b", "1")); d.Allowed || !d.Replayed || d.DecisionID != denied.DecisionID {
			t.Errorf("allowed %v, replayed %v, want the denial to stay", d.Allowed, d.Replayed)
		}
		if got := h.outstanding(t, "epoch-1"); got.Used != 1 || got.Running != 1 {
			t.Errorf("%+v, want it charged once", got)
		}
	})
}

func TestACompletionDuringARebuildIsNotLost(t *testing.T) {
	t.Parallel()
	h, s, known := forgetful(t, testFence)
	h.usage.knows(known)
	h.forget(t)
	s.asked = func() { h.release(t, "a", schemas.OutcomeNotStarted) } // after the ledger's view of it
	d := h.admit(t, ask("b", "1"))
	if !d.Allowed || d.Used != 1 || d.Concurrent != 1 {
		t.Errorf("code %d, used %d, concurrent %d, want the unit and the slot free", d.Code, d.Used, d.Concurrent)
	}
}

func TestAnExtendedLeaseOutlivesARestart(t *testing.T) {
	t.Parallel()
	h, _, known := forgetful(t, testFence)
	known.Leases[0].ExpiresAt = time.Now().Add(-time.Minute)
	h.usage.knows(known)
	h.age(t)
	if d := h.admit(t, ask("b", "1")); len(d.Exhausted) != 2 {
		t.Errorf("exhausted %v, want the slot held as long as it was extended", d.Exhausted)
	}
}

func TestOnlyOneRebuildsAWorkspaceAndAnotherTakesOver(t *testing.T) {
	t.Parallel()
	h, _, known := forgetful(t, testFence)
	h.usage.knows(known)
	h.age(t)
	till := time.Now().Add(time.Second)
	if err := h.redis.HSet(t.Context(), prefix+":{ws}:w", "g", "other "+strconv.FormatInt(till.UnixMilli(), 10)).Err(); err != nil {
		t.Fatal(err)
	}
	d := h.admit(t, ask("b", "1"))
	if len(d.Exhausted) != 2 || time.Now().Before(till) {
		t.Errorf("exhausted %v, %s before the other's turn is over", d.Exhausted, time.Until(till))
	}
}

func TestARecountTakesTheLedgersCountsAndTellsTheDrift(t *testing.T) {
	t.Parallel()
	h, _, known := forgetful(t, testFence)
	h.usage.knows(known)
	h.release(t, "a", schemas.OutcomeNotStarted) // of which the ledger never hears
	before := time.Now()
	got, err := h.Recount(t.Context(), "ws")
	if err != nil {
		t.Fatal(err)
	}
	if want := (enforcement.Drift{Used: -1, Running: -1}); got.Drift() != want || !got.Before.Open || got.After.Used != 1 {
		t.Errorf("drift %+v of %+v, want %+v", got.Drift(), got, want)
	}
	if took := time.Since(before); took < testFence {
		t.Errorf("rebuilt after %s, within the fence", took)
	}
	if d := h.admit(t, ask("b", "1")); len(d.Exhausted) != 2 {
		t.Errorf("exhausted %v, want both limits held by what the ledger knows", d.Exhausted)
	}
}
