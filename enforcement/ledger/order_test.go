package ledger_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
)

// history is what happened: decisions and completions, each as often as it stands
// in its stream.
type history struct {
	decisions   []ledger.Decision
	completions []ledger.Completion
}

// happen makes a history of executions in a few workspaces: allowed, denied,
// stopped, completed, with copies of what may come twice.
func happen(r *rand.Rand, executions int) history {
	var h history
	outcomes := []schemas.Outcome{schemas.OutcomeSucceeded, schemas.OutcomeFailed, schemas.OutcomeCanceled, schemas.OutcomeNotStarted}
	for i := range executions {
		w, x := fmt.Sprintf("w%d", r.IntN(4)), fmt.Sprintf("x%d", i)
		at := noon.Add(time.Duration(i) * time.Second)
		if r.IntN(3) == 0 {
			h.decisions = append(h.decisions, deny(w, x, 9001+r.IntN(2), at))
		} else {
			for range 1 + r.IntN(3) {
				h.decisions = append(h.decisions, allow(w, x, int64(i)))
			}
		}
		if r.IntN(8) == 0 {
			h.decisions = append(h.decisions, stopRunning(w, x, at))
		}
		if r.IntN(4) > 0 {
			c := done(w, x, outcomes[r.IntN(len(outcomes))])
			for range 1 + r.IntN(3) {
				h.completions = append(h.completions, c)
			}
		}
	}
	return h
}

func (h history) shuffled(r *rand.Rand) history {
	ds, cs := append([]ledger.Decision(nil), h.decisions...), append([]ledger.Completion(nil), h.completions...)
	r.Shuffle(len(ds), func(i, j int) { ds[i], ds[j] = ds[j], ds[i] })
	r.Shuffle(len(cs), func(i, j int) { cs[i], cs[j] = cs[j], cs[i] })
	return history{ds, cs}
}

// take is the next few of both, or nothing when both are used up.
func (h *history) take(r *rand.Rand) ([]ledger.Decision, []ledger.Completion) {
	d, c := min(r.IntN(40), len(h.decisions)), min(r.IntN(40), len(h.completions))
	ds, cs := h.decisions[:d], h.completions[:c]
	h.decisions, h.completions = h.decisions[d:], h.completions[c:]
	return ds, cs
}

func (h *history) empty() bool { return len(h.decisions) == 0 && len(h.completions) == 0 }

func TestAnyOrderFoldsToTheSameLedger(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			told := happen(r, 200)
			once := open(t)
			once.fold(t, told.decisions, told.completions)
			want := once.dump(t)
			if len(want["executions"]) == 0 || len(want["denials"]) == 0 || len(want["period_usage"]) == 0 {
				t.Fatal("the history leaves a table empty, so it shows nothing")
			}
			t.Run("shuffled in random batches", func(t *testing.T) {
				b := open(t)
				for rest := told.shuffled(r); !rest.empty(); {
					b.fold(t, nil, nil)
					ds, cs := rest.take(r)
					b.fold(t, ds, cs)
				}
				if diff := cmp.Diff(want, b.dump(t)); diff != "" {
					t.Errorf("ledger differs (-once in order +shuffled):\n%s", diff)
				}
			})
		})
	}
}

func TestSeveralFoldersFoldEverythingOnce(t *testing.T) {
	t.Parallel()
	told := happen(rand.New(rand.NewPCG(99, 1)), 300)
	once := open(t)
	once.fold(t, told.decisions, told.completions)
	want := once.dump(t)
	t.Run("four at once", func(t *testing.T) {
		shared := open(t)
		var wait sync.WaitGroup
		for n := range 4 {
			wait.Go(func() { foldAll(t, shared, told, n) })
		}
		wait.Wait()
		if diff := cmp.Diff(want, shared.dump(t)); diff != "" {
			t.Errorf("ledger differs (-one folder +four folders):\n%s", diff)
		}
		for source, want := range map[string]int{decisions: len(told.decisions), completions: len(told.completions)} {
			if got, err := shared.Position(t.Context(), source); err != nil || got != uint64(want) {
				t.Errorf("position of %s is %d, %v, want %d", source, got, err, want)
			}
		}
	})
}

// foldAll folds the history to its end, as one of several that do: it reads the
// positions, and begins anew wherever another one was faster.
func foldAll(t *testing.T, b *book, told history, n int) {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	for {
		d, err := b.Position(t.Context(), decisions)
		if err != nil {
			t.Error(err)
			return
		}
		c, err := b.Position(t.Context(), completions)
		if err != nil {
			t.Error(err)
			return
		}
		rest := history{told.decisions[d:], told.completions[c:]}
		if rest.empty() {
			return
		}
		ds, cs := rest.take(r)
		batch := ledger.Batch{Decisions: ds, Completions: cs, Spans: []ledger.Span{
			{Source: completions, After: c, Through: c + uint64(len(cs))},
			{Source: decisions, After: d, Through: d + uint64(len(ds))},
		}}
		if err := b.Fold(t.Context(), batch); err != nil && !errors.Is(err, ledger.ErrMoved) {
			t.Error(err)
			return
		}
	}
}
