package ledger_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

const (
	decisions   = "HEADROOM_DECISIONS@1"
	completions = "HEADROOM_EXECUTIONS@1"
	epoch       = "default.2026-11"
)

var (
	month     = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	nextMonth = month.AddDate(0, 1, 0)
	noon      = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
)

// book is a ledger under test, with the position of each source.
type book struct {
	*ledger.Store
	pool *pgxpool.Pool
	at   map[string]uint64
}

func open(t testing.TB) *book {
	t.Helper()
	pool := schematest.Postgres(t)
	b := &book{Store: ledger.New(pool), pool: pool, at: make(map[string]uint64)}
	for _, source := range []string{decisions, completions} {
		if _, err := b.Position(t.Context(), source); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// next is a batch of decisions and completions as if they were read next.
func (b *book) next(ds []ledger.Decision, cs []ledger.Completion) ledger.Batch {
	batch := ledger.Batch{Decisions: ds, Completions: cs}
	for source, n := range map[string]int{decisions: len(ds), completions: len(cs)} {
		if n == 0 {
			continue
		}
		batch.Spans = append(batch.Spans, ledger.Span{Source: source, After: b.at[source], Through: b.at[source] + uint64(n)})
	}
	return batch
}

func (b *book) fold(t testing.TB, ds []ledger.Decision, cs []ledger.Completion) {
	t.Helper()
	batch := b.next(ds, cs)
	if err := b.Fold(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	for _, span := range batch.Spans {
		b.at[span.Source] = span.Through
	}
}

func (b *book) decide(t testing.TB, ds ...ledger.Decision) { t.Helper(); b.fold(t, ds, nil) }

func (b *book) complete(t testing.TB, cs ...ledger.Completion) { t.Helper(); b.fold(t, nil, cs) }

// used and peak of the default epoch; nothing known is 0 and 0.
func (b *book) used(t *testing.T, workspace string) [2]int64 {
	t.Helper()
	var used, peak int64
	err := b.pool.QueryRow(t.Context(), `select used, peak from period_usage where workspace_id = $1 and usage_epoch = $2`,
		workspace, epoch).Scan(&used, &peak)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
	return [2]int64{used, peak}
}

// dump is everything that a batch may change but the positions, as text.
func (b *book) dump(t *testing.T) map[string][]string {
	t.Helper()
	tables := make(map[string][]string)
	for table, order := range map[string]string{
		"executions": "workspace_id, execution_id", "period_usage": "workspace_id, usage_epoch",
		"denials": "minute, workspace_id, code, kind",
	} {
		rows, err := b.pool.Query(t.Context(), fmt.Sprintf(`select to_jsonb(t)::text from %s t order by %s`, table, order))
		if err != nil {
			t.Fatal(err)
		}
		if tables[table], err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			t.Fatal(err)
		}
	}
	return tables
}

func allow(workspace, execution string, used int64) ledger.Decision {
	lease := noon.Add(time.Hour)
	limits := schemas.Limits{MaxExecutions: schemas.LimitOf(100), MaxConcurrentExecutions: schemas.LimitOf(5), MaxStorageMB: schemas.Unlimited}
	return ledger.Decision{DefaultEpoch: epoch, DecisionMade: schemas.DecisionMade{
		DecisionID: "d-" + execution, Kind: schemas.KindAdmission, WorkspaceID: workspace, ExecutionID: execution,
		RequestEventID: "e-" + execution, RequestEventSource: "test", Allowed: true, Exhausted: []string{},
		Used: used, Concurrent: 1, Peak: used, PlanKey: "free", PlanRevision: 1, Limits: limits,
		PeriodStart: month, PeriodEnd: nextMonth, LeaseExpiresAt: &lease,
		DecidedAt: noon.Add(time.Duration(used) * time.Second),
	}}
}

func deny(workspace, execution string, code int, at time.Time) ledger.Decision {
	d := allow(workspace, execution, 0)
	d.Allowed, d.Code, d.LeaseExpiresAt, d.DecidedAt = false, code, nil, at
	return d
}

func stopRunning(workspace, execution string, at time.Time) ledger.Decision {
	d := deny(workspace, execution, 9004, at)
	d.Kind, d.DecisionID = schemas.KindRuntime, "r-"+execution
	return d
}

func done(workspace, execution string, outcome schemas.Outcome) ledger.Completion {
	return ledger.Completion{WorkspaceID: workspace, ExecutionID: execution, Outcome: outcome, At: noon.Add(time.Minute)}
}
