package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
)

func TestFoldCountsUsage(t *testing.T) {
	t.Parallel()
	shadow := deny("w", "x", 9001, noon)
	shadow.Allowed, shadow.Shadow = true, true
	for name, test := range map[string]struct {
		fold func(*testing.T, *book)
		want [2]int64 // used and peak
	}{
		"an allowed execution uses one": {
			func(t *testing.T, b *book) { b.decide(t, allow("w", "x", 3)) }, [2]int64{1, 3},
		},
		"a decision that stands in the stream twice counts once": {
			func(t *testing.T, b *book) {
				b.decide(t, allow("w", "x", 3), allow("w", "x", 3))
				b.decide(t, allow("w", "x", 3))
			}, [2]int64{1, 3},
		},
		"the peak only rises": {
			func(t *testing.T, b *book) {
				b.decide(t, allow("w", "x", 7))
				b.decide(t, allow("w", "y", 2))
			}, [2]int64{2, 7},
		},
		"a completion gives nothing back": {
			func(t *testing.T, b *book) {
				b.decide(t, allow("w", "x", 1))
				b.complete(t, done("w", "x", schemas.OutcomeFailed))
			}, [2]int64{1, 1},
		},
		"not_started gives back once": {
			func(t *testing.T, b *book) {
				b.decide(t, allow("w", "x", 1), allow("w", "y", 2))
				b.complete(t, done("w", "x", schemas.OutcomeNotStarted), done("w", "x", schemas.OutcomeNotStarted))
				b.complete(t, done("w", "x", schemas.OutcomeNotStarted))
			}, [2]int64{1, 2},
		},
		"not_started before the decision leaves nothing used": {
			func(t *testing.T, b *book) {
				b.complete(t, done("w", "x", schemas.OutcomeNotStarted))
				b.decide(t, allow("w", "x", 1))
			}, [2]int64{0, 1},
		},
		"decision and not_started in one batch leave nothing used": {
			func(t *testing.T, b *book) {
				b.fold(t, []ledger.Decision{allow("w", "x", 1)}, []ledger.Completion{done("w", "x", schemas.OutcomeNotStarted)})
			}, [2]int64{0, 1},
		},
		"the first outcome stands": {
			func(t *testing.T, b *book) {
				b.decide(t, allow("w", "x", 1))
				b.complete(t, done("w", "x", schemas.OutcomeSucceeded))
				b.complete(t, done("w", "x", schemas.OutcomeNotStarted))
			}, [2]int64{1, 1},
		},
		"a completion of a denied execution changes no usage": {
			func(t *testing.T, b *book) {
				b.decide(t, deny("w", "x", 9001, noon))
				b.complete(t, done("w", "x", schemas.OutcomeNotStarted))
			}, [2]int64{0, 0},
		},
		"a shadow decision that would be a denial uses nothing": {
			func(t *testing.T, b *book) { b.decide(t, shadow) }, [2]int64{0, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			test.fold(t, b)
			if got := b.used(t, "w"); got != test.want {
				t.Errorf("used and peak are %v, want %v", got, test.want)
			}
		})
	}
}

func TestFoldMovesOnlyFromItsPosition(t *testing.T) {
	t.Parallel()
	b := open(t)
	batch := b.next([]ledger.Decision{allow("w", "x", 1), deny("w", "y", 9001, noon)}, nil)
	if err := b.Fold(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	before := b.dump(t)
	if err := b.Fold(t.Context(), batch); !errors.Is(err, ledger.ErrMoved) {
		t.Errorf("folding the same batch again: %v, want ErrMoved", err)
	}
	ahead := ledger.Batch{
		Spans:     []ledger.Span{{Source: decisions, After: 7, Through: 8}, {Source: completions, After: 0, Through: 1}},
		Decisions: []ledger.Decision{allow("w", "z", 1)},
	}
	if err := b.Fold(t.Context(), ahead); !errors.Is(err, ledger.ErrMoved) {
		t.Errorf("folding past a hole: %v, want ErrMoved", err)
	}
	if diff := cmp.Diff(before, b.dump(t)); diff != "" {
		t.Errorf("refused folds changed the ledger (-before +after):\n%s", diff)
	}
	for source, want := range map[string]uint64{decisions: 2, completions: 0} {
		if got, err := b.Position(t.Context(), source); err != nil || got != want {
			t.Errorf("position of %s is %d, %v, want %d", source, got, err, want)
		}
	}
}

func TestFoldTakesAllOrNothing(t *testing.T) {
	t.Parallel()
	b := open(t)
	bad := allow("w", "y", 2)
	bad.RequestEventID = "no text may hold \x00"
	err := b.Fold(t.Context(), b.next([]ledger.Decision{allow("w", "x", 1), bad}, nil))
	if !ledger.IsRefused(err) {
		t.Fatalf("folding a NUL byte: %v, want a refusal", err)
	}
	if got := b.used(t, "w"); got != [2]int64{} {
		t.Errorf("a refused batch left usage %v", got)
	}
	if got, err := b.Position(t.Context(), decisions); err != nil || got != 0 {
		t.Errorf("a refused batch moved the position to %d, %v", got, err)
	}
	b.decide(t, allow("w", "x", 1))
}

func TestFoldNamesTheQuotaCounter(t *testing.T) {
	t.Parallel()
	b := open(t)
	id := "0198c0de-0000-7000-8000-000000000001"
	if _, err := b.pool.Exec(t.Context(), `
		insert into workspaces (id) values ('w');
		insert into plan_revisions (revision, plan_key, rank) values (1, 'free', 0);
		insert into subscriptions (id, workspace_id, source, source_id, plan_key, plan_revision, snapshot, kind,
			period_start, period_end, usage_epoch)
		values ('`+id+`', 'w', 'system', 's', 'free', 1, '{}', 'created', '2026-11-01', '2026-12-01', 'shared')`); err != nil {
		t.Fatal(err)
	}
	known, unknown := allow("w", "known", 1), allow("w", "unknown", 2)
	stranger := "0198c0de-0000-7000-8000-000000000002"
	known.SubscriptionID, unknown.SubscriptionID = &id, &stranger
	b.decide(t, known, unknown, allow("w", "default", 3))
	for name, want := range map[string]string{"known": "shared", "unknown": stranger, "default": epoch} {
		var got string
		if err := b.pool.QueryRow(t.Context(), `select usage_epoch from executions where execution_id = $1`, name).Scan(&got); err != nil || got != want {
			t.Errorf("%s subscription: epoch %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestFoldRollsUpDenials(t *testing.T) {
	t.Parallel()
	b := open(t)
	minute := noon.Truncate(time.Minute)
	b.decide(t, deny("w", "b", 9001, minute.Add(2*time.Second)), deny("w", "a", 9001, minute.Add(time.Second)),
		deny("w", "c", 9002, minute), deny("v", "d", 9001, minute))
	b.decide(t, deny("w", "e", 9001, minute), deny("w", "f", 9001, minute.Add(time.Minute)))
	records, err := b.Decisions(t.Context(), ledger.Query{Workspace: "w"})
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Execution string
		Code      int
		Count     int64
	}
	var got []row
	for _, r := range records {
		got = append(got, row{r.Decision.ExecutionID, r.Decision.Code, r.Count})
	}
	want := []row{{"f", 9001, 1}, {"b", 9001, 3}, {"c", 9002, 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("denials (-want +got):\n%s", diff)
	}
}

func TestFoldNotesTheEarliestRuntimeDenial(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.decide(t, stopRunning("w", "x", noon.Add(2*time.Minute)))
	b.decide(t, allow("w", "x", 1))
	b.decide(t, stopRunning("w", "x", noon.Add(3*time.Minute)), stopRunning("w", "x", noon.Add(time.Minute)))
	records, err := b.Decisions(t.Context(), ledger.Query{Workspace: "w", Execution: "x"})
	if err != nil {
		t.Fatal(err)
	}
	allowed := records[len(records)-1]
	if !allowed.Decision.Allowed || allowed.RuntimeCode != 9004 || !allowed.RuntimeDeniedAt.Equal(noon.Add(time.Minute)) {
		t.Errorf("execution's record is %+v, want allowed, stopped with 9004 at 12:01", allowed)
	}
	if got := b.used(t, "w"); got != [2]int64{1, 1} {
		t.Errorf("used and peak are %v, want 1 and 1", got)
	}
}
