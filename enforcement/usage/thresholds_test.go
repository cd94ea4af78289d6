package usage_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// told are the thresholds in the outbox, in the order in which they were written.
func (h *house) told(t *testing.T) string {
	t.Helper()
	rows, err := h.pool.Query(t.Context(), `select body from outbox where subject_kind = 'usage.threshold_reached' order by position`)
	if err != nil {
		t.Fatal(err)
	}
	bodies, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, body := range bodies {
		var e schemas.UsageThresholdReached
		if err := json.Unmarshal(body, &e); err != nil {
			t.Fatal(err)
		}
		if !e.Period.Start.Before(e.Period.End) || e.WorkspaceID == "" {
			t.Errorf("an event of no period or workspace: %s", body)
		}
		told = append(told, fmt.Sprintf("%s %d%% (%d/%d)", e.Limit, e.Percent, e.Used, e.LimitValue))
	}
	return strings.Join(told, ", ")
}

func TestThresholdsAreToldOnceForAPeriodAndALimit(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{}), plan("ten", features{"projects": 10, "emails": 5, schemas.FeatureStorage: 1}),
		plan("twelve", features{"projects": 12, "emails": 5, schemas.FeatureStorage: 1}))
	h.assign(t, "w", "ten")
	var want []string
	step := func(what string, fresh ...string) {
		t.Helper()
		want = append(want, fresh...)
		if got := h.told(t); got != strings.Join(want, ", ") {
			t.Errorf("after %s told %q, want %q", what, got, strings.Join(want, ", "))
		}
	}
	h.must(t, of("projects", 7))
	step("7 of 10")
	rolledBack := pgx.BeginFunc(t.Context(), h.pool, func(tx pgx.Tx) error {
		if _, err := h.Consume(t.Context(), tx, of("projects", 1)); err != nil {
			return err
		}
		return pgx.ErrTxClosed
	})
	step("a rollback of the eighth")
	if rolledBack == nil {
		t.Fatal("the transaction was committed")
	}
	h.must(t, of("projects", 1))
	step("8 of 10", "projects 80% (8/10)")
	h.must(t, of("projects", 1))
	h.release(t, of("projects", 3))
	h.must(t, of("projects", 2))
	step("8 of 10 again")
	h.must(t, of("projects", 2))
	step("10 of 10", "projects 100% (10/10)")
	h.assign(t, "w", "twelve")
	h.must(t, of("projects", 1))
	step("11 of 12, with another limit", "projects 80% (11/12)")
	if got := h.once(t, "k", of("emails", 5)); got.Err != nil {
		t.Fatal(got.Err)
	}
	step("all of a flow in one", "emails 80% (5/5)", "emails 100% (5/5)")
	err := h.in(t, func(tx pgx.Tx) error {
		_, err := h.ConsumeAll(t.Context(), tx, []usage.Change{of(schemas.FeatureStorage, 900_000), of("projects", 1)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	step("a batch", "projects 100% (12/12)", "storage_bytes 80% (900000/1048576)")
	h.assign(t, "w", "ten")
	h.release(t, of("projects", 3))
	h.must(t, of("projects", 1))
	step("the old limit again, of which both were told")
}

func TestThresholdsOfOddLimits(t *testing.T) {
	t.Parallel()
	pool := schematest.Postgres(t)
	for limit, want := range map[int64]map[int64]string{
		-1:            {math.MaxInt64: ""},
		1:             {1: "projects 80% (1/1), projects 100% (1/1)"},
		3:             {2: "", 3: "projects 80% (3/3), projects 100% (3/3)"},
		5:             {3: "", 4: "projects 80% (4/5)"},
		math.MaxInt64: {7378697629483820645: "", 7378697629483820646: "projects 80% (7378697629483820646/9223372036854775807)"},
	} {
		for used, told := range want {
			t.Run(fmt.Sprintf("%d of %d", used, limit), func(t *testing.T) {
				h, _ := fixedOn(t, pool, features{"projects": limit})
				if _, err := pool.Exec(t.Context(), `delete from usage_counters; delete from usage_thresholds; delete from outbox`); err != nil {
					t.Fatal(err)
				}
				h.must(t, of("projects", used))
				if got := h.told(t); got != told {
					t.Errorf("told %q, want %q", got, told)
				}
			})
		}
	}
}
