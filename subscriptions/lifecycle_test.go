package subscriptions_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// with counts the lines that have all of the words.
func (l *lines) with(words ...string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for line := range strings.Lines(l.text.String()) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			n++
		}
	}
	return n
}

func (l *lines) log() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func TestTheWorkerCatchesUpAfterMonthsInOneStep(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	at := now(t, pool)
	start := at.AddDate(0, -8, -1)
	old := assign(t, s, subscriptions.Assignment{Start: &start, Now: start.Add(time.Hour)})
	lifecycle(t, subscriptions.Policy{}, schematest.Logger(t))
	nothingDue(t, pool)

	rows := history(t, s, "acme")
	if len(rows) != 2 || rows[0].Kind != "cycle" || rows[0].GapFrom == nil || !rows[0].GapFrom.Equal(old.PeriodEnd) || !rows[0].Period().Contains(at) {
		t.Fatalf("history is %+v", rows)
	}
	if want := subscriptions.Monthly.Period(start, at); !rows[0].PeriodStart.Equal(want.Start.Truncate(time.Millisecond)) || rows[0].UsageEpoch != rows[0].ID {
		t.Errorf("row is %+v, want a fresh quota in %v", rows[0], want)
	}
	wantTold(t, pool, "renewed created", "invalidated 1", "renewed cycle", "invalidated 2")
}

func TestWorkspaceThatFailsKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	manyDue(t, s, pool, 40)
	var snapshot string
	if err := pool.QueryRow(t.Context(), `SELECT snapshot::text FROM subscriptions WHERE workspace_id = 'ws00001'`).Scan(&snapshot); err != nil {
		t.Fatal(err)
	}
	// The one that is due the longest cannot be read.
	execute(t, pool, `UPDATE subscriptions SET snapshot = '{}', due_at = now() - interval '1 day' WHERE workspace_id = 'ws00001'`)
	log := &lines{}
	lifecycle(t, subscriptions.Policy{}, log.log())
	eventually(t, "the others are renewed", func() bool {
		return count(t, pool, `SELECT count(*) FROM subscriptions WHERE kind = 'cycle'`) == 40
	})
	eventually(t, "it was tried twice", func() bool {
		return count(t, pool, `SELECT count(*) FROM subscriptions WHERE workspace_id = 'ws00001' AND due_at > now() + interval '1200 ms'`) == 1
	})
	if n := log.with("level=ERROR", "workspace cannot be caught up", "ws00001", "decode snapshot"); n != 1 || log.with("level=ERROR") != 1 {
		t.Errorf("the same error was logged %d times, want once:\n%s", n, log.text.String())
	}
	execute(t, pool, `UPDATE subscriptions SET snapshot = '[]', due_at = now() WHERE workspace_id = 'ws00001'`)
	eventually(t, "another error is logged", func() bool { return log.with("level=ERROR", "ws00001") == 2 || log.with("level=ERROR") > 2 })

	_, err := pool.Exec(t.Context(), `UPDATE subscriptions SET snapshot = $1::jsonb, due_at = now() WHERE workspace_id = 'ws00001'`, snapshot)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is renewed", func() bool { return log.with("workspace is caught up again", "ws00001") == 1 })
}

func TestTheWorkerLeavesALockedWorkspaceAlone(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	manyDue(t, s, pool, 3)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT FROM workspaces WHERE id = 'ws00002' FOR UPDATE`); err != nil {
			return err
		}
		lifecycle(t, subscriptions.Policy{}, schematest.Logger(t))
		eventually(t, "the others are renewed", func() bool {
			return count(t, pool, `SELECT count(*) FROM subscriptions WHERE kind = 'cycle'`) == 3
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	nothingDue(t, pool)
	if n := count(t, pool, `SELECT count(*) FROM subscriptions WHERE kind = 'cycle'`); n != 4 {
		t.Errorf("%d renewals, want 4", n)
	}
}

func TestLookupsAndWorkersRenewOnce(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	const due = 100
	manyDue(t, s, pool, due)
	execute(t, pool, `DELETE FROM outbox`)
	at := now(t, pool)
	lifecycle(t, subscriptions.Policy{}, schematest.Logger(t))
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for i := due; i > 0; i-- {
				info, err := s.PlanInfo(t.Context(), fmt.Sprintf("ws%05d", i), at)
				if err != nil || !info.Period.Contains(at) || info.SubscriptionID != info.UsageEpoch {
					t.Errorf("plan info is %+v, %v", info, err)
				}
			}
		})
	}
	readers.Wait()
	nothingDue(t, pool)
	wantRenewedOnce(t, pool, due+1)
}

func TestWhatIsDueIsFoundByItsIndex(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	manyDue(t, s, pool, 5000)
	execute(t, pool, `UPDATE subscriptions SET due_at = now() + interval '1 day' WHERE workspace_id > 'ws00020'`)
	execute(t, pool, `VACUUM ANALYZE subscriptions`)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) `+subscriptions.ClaimDue)
		if err != nil {
			return err
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		text := strings.Join(plan, "\n")
		t.Log("\n" + text)
		if !strings.Contains(text, "Index Scan using subscriptions_due on subscriptions") || strings.Contains(text, "Sort") || strings.Contains(text, "Seq Scan") {
			t.Errorf("the plan does not read the beginning of the index:\n%s", text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
