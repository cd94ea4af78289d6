package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
)

// running is an allow given so long ago, of an execution that may run so many minutes.
func running(execution string, ago time.Duration, minutes schemas.Limit) ledger.Decision {
	d := allow("ws", execution, 1)
	d.DecidedAt = time.Now().Add(-ago).UTC().Truncate(time.Millisecond)
	expires := d.DecidedAt.Add(time.Hour)
	d.LeaseExpiresAt, d.Limits.MaxExecutionDurationMinutes = &expires, minutes
	return d
}

// overdue looks once, and says yes to those that are told.
func (b *book) overdue(t *testing.T, sweep ledger.Sweep, say func(execution string) bool) ([]string, ledger.Told) {
	t.Helper()
	var handed []string
	told, err := b.TellOverdue(t.Context(), sweep, func(_ context.Context, all []ledger.Overdue) []bool {
		said := make([]bool, len(all))
		for i, each := range all {
			handed = append(handed, each.Admission.ExecutionID)
			said[i] = say(each.Admission.ExecutionID)
		}
		return said
	})
	if err != nil {
		t.Fatal(err)
	}
	return handed, told
}

func yes(string) bool { return true }

func TestOverdueExecutionsAreHandedOutUntilTheyAreTold(t *testing.T) {
	t.Parallel()
	b := open(t)
	ten := schemas.LimitOf(10)
	b.decide(t, running("second", 12*time.Minute, ten), running("first", 13*time.Minute, ten), running("in-time", 9*time.Minute, ten),
		running("never", time.Hour, schemas.Unlimited), running("as-good-as-never", time.Hour, schemas.LimitOf(1<<60)),
		running("done", time.Hour, ten), running("known", time.Hour, ten))
	b.complete(t, done("ws", "done", schemas.OutcomeFailed))
	b.decide(t, stopRunning("ws", "known", time.Now()))

	if got, told := b.overdue(t, ledger.Sweep{Grace: 5 * time.Minute, Limit: 10}, yes); len(got) != 0 || told.Known != 1 {
		t.Errorf("within the grace %q are handed out, %+v", got, told)
	}
	sweep := ledger.Sweep{Limit: 10}
	got, told := b.overdue(t, sweep, func(execution string) bool { return execution == "second" })
	if diff := cmp.Diff([]string{"first", "second"}, got); diff != "" || told.Published != 1 || told.More {
		t.Errorf("handed out, the one due longest first (-want +got):\n%s%+v", diff, told)
	}
	if got, told := b.overdue(t, ledger.Sweep{Limit: 1}, yes); !slices.Equal(got, []string{"first"}) || !told.More {
		t.Errorf("the untold one again: %q, %+v", got, told)
	}
	if got, told := b.overdue(t, sweep, yes); len(got) != 0 || told != (ledger.Told{}) {
		t.Errorf("once all are told: %q, %+v", got, told)
	}
}

func TestWhatOneLookHasInHandAnotherLeavesToIt(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.decide(t, running("a", time.Hour, schemas.LimitOf(1)), running("b", time.Hour, schemas.LimitOf(1)))
	got, _ := b.overdue(t, ledger.Sweep{Limit: 1}, func(string) bool {
		if others, _ := b.overdue(t, ledger.Sweep{Limit: 10}, yes); len(others) != 1 {
			t.Errorf("beside one that is in hand %q are handed out", others)
		}
		return true
	})
	if len(got) != 1 {
		t.Errorf("handed out: %q", got)
	}
}

func TestLeasesThatAreOverAreLookedUpOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	for _, execution := range []string{"leaked", "extended", "unheard"} {
		b.decide(t, running(execution, 2*time.Hour, schemas.Unlimited))
	}
	b.decide(t, running("live", time.Minute, schemas.Unlimited))
	later := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	away := errors.New("away")
	look := func() (handed []string, lapsed ledger.Lapsed, err error) {
		lapsed, err = b.CheckLeases(t.Context(), ledger.Sweep{Limit: 10}, func(_ context.Context, all []ledger.Lease) []ledger.Found {
			found := make([]ledger.Found, len(all))
			for i, l := range all {
				handed = append(handed, l.ExecutionID)
				switch l.ExecutionID {
				case "extended":
					found[i] = ledger.Found{Live: true, Until: later}
				case "unheard":
					found[i] = ledger.Found{Err: away}
				}
			}
			return found
		})
		slices.Sort(handed)
		return handed, lapsed, err
	}
	handed, lapsed, err := look()
	if err != nil || !slices.Equal(handed, []string{"extended", "leaked", "unheard"}) ||
		len(lapsed.Leaked) != 1 || lapsed.Leaked[0].ExecutionID != "leaked" || lapsed.Extended != 1 {
		t.Errorf("%q looked up, %+v, %v", handed, lapsed, err)
	}
	if handed, _, err := look(); !errors.Is(err, away) || !slices.Equal(handed, []string{"unheard"}) {
		t.Errorf("again %q looked up, %v", handed, err)
	}
	if usage, err := b.Usage(t.Context(), "ws", epoch); err != nil || len(usage.Leases) != 2 {
		t.Errorf("live are %+v, %v, want the one that was extended and the one that never ended", usage.Leases, err)
	}
}

func TestTheMigrationSetsOutWhatIsOpen(t *testing.T) {
	t.Parallel()
	b := open(t)
	ended := running("ended", 2*time.Hour, schemas.LimitOf(10))
	open, unlimited := running("open", time.Minute, schemas.LimitOf(10)), running("unlimited", time.Minute, schemas.Unlimited)
	b.decide(t, ended, open, unlimited, running("done", time.Minute, schemas.LimitOf(10)))
	b.complete(t, done("ws", "done", schemas.OutcomeFailed), done("ws", "unheard-of", schemas.OutcomeFailed))
	body, err := os.ReadFile("../../schemas/migrations/00016_watchdog.sql")
	if err != nil {
		t.Fatal(err)
	}
	_, up, _ := strings.Cut(string(body), "-- +goose Up")
	for _, statement := range []string{"ALTER TABLE executions DROP COLUMN duration_due_at, DROP COLUMN leased_until, DROP COLUMN leaked_at", up} {
		if _, err := b.pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := b.pool.Query(t.Context(), `SELECT execution_id, duration_due_at, leased_until FROM executions`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	got := map[string][2]*time.Time{}
	for rows.Next() {
		var id string
		var at [2]*time.Time
		if err := rows.Scan(&id, &at[0], &at[1]); err != nil {
			t.Fatal(err)
		}
		got[id] = at
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	due := open.DecidedAt.Add(10 * time.Minute)
	want := map[string][2]*time.Time{
		"ended": {nil, ended.LeaseExpiresAt}, "open": {&due, open.LeaseExpiresAt}, "unlimited": {nil, unlimited.LeaseExpiresAt},
		"done": {}, "unheard-of": {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is open (-want +got):\n%s", diff)
	}
}

// BenchmarkTellOverdue is the telling of 500 executions among a million that are open, of
// which none else is due.
func BenchmarkTellOverdue(b *testing.B) {
	book := open(b)
	limits, filled := `{"max_execution_duration_minutes":{"value":10,"unlimited":false}}`, 1_000_000
	fill := func(name string, n int, ago string) {
		_, err := book.pool.Exec(b.Context(), fmt.Sprintf(`INSERT INTO executions (workspace_id, execution_id, decision_id, request_event_id,
				request_event_source, usage_epoch, period_start, period_end, plan_key, plan_revision, limits, admitted_at, lease_expires_at,
				used, concurrent, peak, duration_due_at, leased_until)
			SELECT 'ws' || i %% 1000, '%s' || i, 'd' || i, 'e', 'test', 'epoch', now(), now(), 'free', 1, '%s', now() - interval '%s',
				now() + interval '1 day', 1, 1, 1, now() - interval '%s' + interval '10 minutes', now() + interval '1 day'
			FROM generate_series(1, %d) i`, name, limits, ago, ago, n))
		if err != nil {
			b.Fatal(err)
		}
	}
	fill("open", filled, "1 minute")
	if _, err := book.pool.Exec(b.Context(), `ANALYZE executions`); err != nil {
		b.Fatal(err)
	}
	round := 0
	for b.Loop() {
		b.StopTimer()
		round++
		fill(fmt.Sprintf("due%d-", round), 500, "1 hour")
		b.StartTimer()
		told, err := book.TellOverdue(b.Context(), ledger.Sweep{Limit: 500}, func(_ context.Context, all []ledger.Overdue) []bool {
			return slices.Repeat([]bool{true}, len(all))
		})
		if err != nil || told.Published != 500 {
			b.Fatal(told, err)
		}
	}
	b.ReportMetric(float64(500*b.N)/b.Elapsed().Seconds(), "executions/s")
}
