package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestPositionsBelongToOneStream(t *testing.T) {
	t.Parallel()
	b := open(t)
	if got, err := b.Applied(t.Context(), "HEADROOM_DECISIONS_2"); err != nil || got != 0 {
		t.Errorf("an unknown stream is applied to %d, %v, want 0", got, err)
	}
	old := ledger.Source("STREAM", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	anew := ledger.Source("STREAM", time.Date(2026, 1, 1, 0, 0, 0, 5, time.UTC))
	for source, through := range map[string]uint64{old: 100, anew: 3} {
		if _, err := b.Position(t.Context(), source); err != nil {
			t.Fatal(err)
		}
		if err := b.Fold(t.Context(), ledger.Batch{Spans: []ledger.Span{{Source: source, Through: through}}}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := b.Applied(t.Context(), "STREAM"); err != nil || got != 3 {
		t.Errorf("the stream is applied to %d, %v, want the newer one's 3", got, err)
	}
	if got, err := b.Position(t.Context(), old); err != nil || got != 100 {
		t.Errorf("the older stream's position is %d, %v, want 100", got, err)
	}
}

func TestRewindGoesBackOnly(t *testing.T) {
	t.Parallel()
	b := open(t)
	if err := b.Fold(t.Context(), ledger.Batch{Spans: []ledger.Span{{Source: decisions, Through: 10}}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Rewind(t.Context(), decisions, 10, 11); err == nil {
		t.Error("a rewind forwards was taken")
	}
	if err := b.Rewind(t.Context(), decisions, 9, 4); !errors.Is(err, ledger.ErrMoved) {
		t.Errorf("a rewind from elsewhere: %v, want ErrMoved", err)
	}
	if err := b.Rewind(t.Context(), decisions, 10, 4); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Position(t.Context(), decisions); err != nil || got != 4 {
		t.Errorf("position is %d, %v, want 4", got, err)
	}
}

func TestOneProcessLeads(t *testing.T) {
	t.Parallel()
	pool := schematest.Postgres(t)
	one, two := ledger.New(pool), ledger.New(pool)
	first, err := one.TryLead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.TryLead(t.Context()); !errors.Is(err, ledger.ErrNotLeader) {
		t.Errorf("a second leader: %v, want ErrNotLeader", err)
	}
	if err := first.Check(t.Context()); err != nil {
		t.Errorf("the leader's check: %v", err)
	}
	first.Release(t.Context())
	second, err := two.TryLead(t.Context())
	if err != nil {
		t.Fatalf("leading after a release: %v", err)
	}
	if _, err := pool.Exec(t.Context(), `
		select pg_terminate_backend(pid) from pg_locks
		where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`); err != nil {
		t.Fatal(err)
	}
	if err := second.Check(t.Context()); err == nil {
		t.Error("a leader whose connection was ended still leads")
	}
	second.Release(t.Context())
	leadSoon(t, one).Release(t.Context())
}

// leadSoon waits for a leadership that Postgres is about to take away: a
// backend tells its client of its end before it gives up its locks.
func leadSoon(t *testing.T, s *ledger.Store) *ledger.Leadership {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for deadline := time.After(10 * time.Second); ; {
		l, err := s.TryLead(t.Context())
		if err == nil {
			return l
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("leading after the leader's connection was ended: %v", err)
		}
	}
}
