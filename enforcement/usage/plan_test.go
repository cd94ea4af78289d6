package usage_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

func TestPlanSwitchInMidPeriodKeepsWhatWasConsumed(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{}), plan("small", features{"projects": 10, "emails": 10}), plan("large", features{"projects": 20, "emails": 20}))
	before := h.assign(t, "w", "small")
	h.must(t, of("projects", 7))
	h.must(t, of("emails", 8))
	for _, key := range []string{"large", "small"} {
		if after := h.assign(t, "w", key); after.UsageEpoch != before.UsageEpoch {
			t.Fatalf("the switch to %s began another epoch", key)
		}
	}
	if _, err := h.consume(t, of("emails", 3)); !errors.As(err, new(*usage.QuotaExceeded)) {
		t.Errorf("3 more than 8 of 10: %v", err)
	}
	if used := h.must(t, of("emails", 2)); used != 10 {
		t.Errorf("%d e-mails are used, want 10", used)
	}
	h.wantUsed(t, "projects", 7)
}

func TestPeriodsOfOneEpochShareAFlowAndOthersBeginAnew(t *testing.T) {
	t.Parallel()
	h, plans := fixedOn(t, schematest.Postgres(t), features{"projects": 10, "emails": 10})
	h.must(t, of("emails", 4))
	h.must(t, of("projects", 4))
	plans.info.Period.Start = plans.info.Period.Start.Add(time.Minute) // an early roll that carries its usage
	if used := h.must(t, of("emails", 1)); used != 5 {
		t.Errorf("%d used in the next period of the epoch, want 5", used)
	}
	plans.info.UsageEpoch, plans.info.Period.Start = "epoch-2", plans.info.Period.End
	plans.info.Period.End = plans.info.Period.End.Add(24 * time.Hour)
	balance, err := h.consume(t, of("emails", 1))
	if err != nil || balance.Used != 1 || balance.ResetsAt == nil || !balance.ResetsAt.Equal(plans.info.Period.End) {
		t.Errorf("the first of a new epoch: %+v, %v", balance, err)
	}
	if used := h.must(t, of("projects", 1)); used != 5 {
		t.Errorf("%d of a stock are used after a period, want 5", used)
	}
}

// The cache is told of nothing in these tests: no invalidation is heard.
func TestADowngradeIsObeyedByTheNextCall(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{}), plan("small", features{"projects": 3}), plan("large", features{"projects": 10}))
	h.assign(t, "w", "large")
	h.must(t, of("projects", 5))
	h.assign(t, "w", "small")
	doors := map[string]func() error{
		"consume": func() error { _, err := h.consume(t, of("projects", 1)); return err },
		"all": func() error {
			return h.in(t, func(tx pgx.Tx) error {
				_, err := h.ConsumeAll(t.Context(), tx, []usage.Change{of("projects", 1)})
				return err
			})
		},
		"once": func() error { _, err := h.ConsumeOnce(t.Context(), usage.Once{}, of("projects", 1)); return err },
		"check": func() error {
			v, err := h.Check(t.Context(), []usage.Change{of("projects", 1)})
			if err != nil {
				t.Fatal(err)
			}
			return v[0].Err
		},
	}
	for name, door := range doors {
		h.assign(t, "w", "large")
		if _, err := h.consume(t, of("projects", 0)); err != nil { // the cache has the large plan
			t.Fatal(err)
		}
		h.assign(t, "w", "small")
		var refusal *usage.QuotaExceeded
		if err := door(); !errors.As(err, &refusal) || refusal.Limit != 3 || refusal.PlanKey != "small" {
			t.Errorf("%s after the downgrade: %v, want a refusal by the small plan", name, err)
		}
	}
	h.assign(t, "w", "large")
	if balance := h.release(t, of("projects", 1)); balance.Limit != plan("", features{"l": 10}).Features["l"] {
		t.Errorf("release tells the limit %v", balance.Limit)
	}
	if _, err := h.consume(t, of("projects", 6)); err != nil {
		t.Errorf("after the upgrade: %v", err)
	}
}

func TestANewCatalogIsObeyedByTheNextCallOnTheDefaultPlan(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 10}), plan("other", features{"projects": 1}))
	h.must(t, of("projects", 5))
	lower := plan("free", features{"projects": 3})
	lower.Default = true
	h.apply(t, lower, plan("other", features{"projects": 1}))
	// All find out at the same moment, and none may spoil what another one reads.
	if wins := each(t, 50, func(int) error { _, err := h.consume(t, of("projects", 1)); return err }); wins != 0 {
		t.Errorf("%d consumed by the old catalog", wins)
	}
	other := plan("other", features{"projects": 30})
	other.Default = true
	h.apply(t, plan("free", features{"projects": 3}), other)
	if wins := each(t, 50, func(int) error { _, err := h.consume(t, of("projects", 1)); return err }); wins != 25 {
		t.Errorf("%d consumed by the new catalog, want 25", wins)
	}
}

func TestAReadingThatStaysOldDecidesNothing(t *testing.T) {
	t.Parallel()
	h, plans := fixedOn(t, schematest.Postgres(t), features{"projects": 10})
	if _, err := h.pool.Exec(t.Context(), `insert into workspaces (id, revision) values ('w', 7)`); err != nil {
		t.Fatal(err)
	}
	plans.info.Revision = 6
	change := of("projects", 1)
	for name, door := range map[string]func() error{
		"consume": func() error { _, err := h.consume(t, change); return err },
		"once":    func() error { _, err := h.ConsumeOnce(t.Context(), usage.Once{Key: "k"}, change); return err },
		"release": func() error { _, err := h.ReleaseOnce(t.Context(), usage.Once{Key: "r"}, change); return err },
		"check":   func() error { _, err := h.Check(t.Context(), []usage.Change{change}); return err },
		"resources": func() error {
			_, err := h.Resources(t.Context(), usage.ResourceQuery{WorkspaceID: "w", Feature: "projects"})
			return err
		},
		"all": func() error {
			return h.in(t, func(tx pgx.Tx) error { _, err := h.ConsumeAll(t.Context(), tx, []usage.Change{change}); return err })
		},
	} {
		plans.dropped = nil
		if err := door(); !errors.Is(err, usage.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
		for _, revision := range plans.dropped {
			if revision != 7 {
				t.Errorf("%s drops what is below revision %d, want 7", name, revision)
			}
		}
		if n := len(plans.dropped); n < 3 || n > 6 {
			t.Errorf("%s dropped the reading %d times", name, n)
		}
	}
	h.wantUsed(t, "projects", 0)
	if n := h.count(t, `select count(*) from usage_requests`); n != 0 {
		t.Errorf("%d keys are taken by requests that were not answered", n)
	}
	plans.info.Revision = 8 // ahead of a transaction that began before
	h.must(t, change)
}

func TestAPlanThatCannotBeReadDecidesNothing(t *testing.T) {
	t.Parallel()
	h, plans := fixedOn(t, schematest.Postgres(t), features{"projects": 10})
	gone := errors.New("connection refused")
	plans.err = gone
	if _, err := h.consume(t, of("projects", 1)); !errors.Is(err, usage.ErrUnavailable) || !errors.Is(err, gone) {
		t.Errorf("consume: %v, want ErrUnavailable for its cause", err)
	}
	plans.err = subscriptions.ErrNotEntitled
	if _, err := h.consume(t, of("projects", 1)); errors.Is(err, usage.ErrUnavailable) || !errors.Is(err, subscriptions.ErrNotEntitled) {
		t.Errorf("consume: %v, want ErrNotEntitled alone", err)
	}
	h.wantUsed(t, "projects", 0)
}

func TestOtherIsolationLevelsFailInsteadOfExceeding(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			h := open(t, plan("free", features{"projects": 5}))
			h.must(t, of("projects", 1))
			begin := func() pgx.Tx {
				tx, err := h.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { tx.Rollback(context.WithoutCancel(t.Context())) })
				return tx
			}
			tx := begin()
			if _, err := tx.Exec(t.Context(), `select count(*) from usage_counters`); err != nil { // the snapshot is taken
				t.Fatal(err)
			}
			h.must(t, of("projects", 4))
			_, err := h.Consume(t.Context(), tx, of("projects", 1))
			var fault *pgconn.PgError
			if !errors.As(err, &fault) || fault.Code != "40001" {
				t.Fatalf("a counter that changed after the snapshot: %v, want 40001", err)
			}
			tx.Rollback(t.Context())

			h.release(t, of("projects", 5))
			retries := new(atomic.Int64)
			wins := each(t, 30, func(int) error { return retried(t, h, level, retries) })
			if wins != 5 {
				t.Errorf("%d callers won, want 5", wins)
			}
			t.Logf("%s: 30 callers for 5 units tried again %d times", level, retries.Load())
			h.wantUsed(t, "projects", 5)
		})
	}
}

// retried runs the whole transaction again as long as PostgreSQL asks for that.
func retried(t *testing.T, h *house, level pgx.TxIsoLevel, retries *atomic.Int64) error {
	for range 100 {
		err := pgx.BeginTxFunc(t.Context(), h.pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
			_, err := h.Consume(t.Context(), tx, of("projects", 1))
			return err
		})
		var fault *pgconn.PgError
		if !errors.As(err, &fault) || fault.Code != "40001" {
			return err
		}
		retries.Add(1)
	}
	return errors.New("100 serialization failures")
}

func TestAnOldSnapshotDoesNotDoubtANewerPlan(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{}), plan("small", features{"projects": 3}), plan("large", features{"projects": 10}))
	h.assign(t, "w", "large")
	h.must(t, of("projects", 3))
	tx, err := h.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), `select 1 from workspaces`); err != nil {
		t.Fatal(err)
	}
	row := h.assign(t, "w", "small")
	h.plans.Invalidate("w", 0)
	var refusal *usage.QuotaExceeded
	if _, err := h.Consume(t.Context(), tx, of("projects", 1)); !errors.As(err, &refusal) || refusal.Limit != 3 {
		t.Errorf("on plan %s: %v, want a refusal by the plan that is newer than the snapshot", row.PlanKey, err)
	}
}

func TestTheDatabasesIsolationDoesNotMatterToTheDoors(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 20}))
	name := h.pool.Config().ConnConfig.Database
	if _, err := h.pool.Exec(t.Context(), fmt.Sprintf(`alter database %s set default_transaction_isolation = 'repeatable read'`, name)); err != nil {
		t.Fatal(err)
	}
	h.pool.Reset()
	other := openOn(t, h.pool, h.pool) // another process: their queues do not meet
	wins := each(t, 60, func(i int) error {
		door := []*house{h, other}[i%2]
		_, err := door.ConsumeOnce(t.Context(), usage.Once{}, of("projects", 1))
		return err
	})
	if wins != 20 {
		t.Errorf("%d callers won, want 20", wins)
	}
}

func TestAPoolOfOneConnectionIsEnough(t *testing.T) {
	t.Parallel()
	shared := schematest.Postgres(t)
	one := schematest.Pool(t, schematest.PostgresURL(t), 1)
	setup := openOn(t, shared, shared, plan("free", features{"projects": 5}))
	own := openOn(t, one, schematest.Pool(t, schematest.PostgresURL(t), 1))
	for name, door := range map[string]func() error{
		"consume": func() error { _, err := own.consume(t, of("projects", 1)); return err },
		"once": func() error {
			_, err := own.ConsumeOnce(t.Context(), usage.Once{Key: "k"}, of("projects", 1))
			return err
		},
		"not known": func() error {
			_, err := own.consume(t, of("nothing", 1))
			if errors.As(err, new(*usage.PolicyViolation)) {
				return nil
			}
			return err
		},
	} {
		if err := door(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Where the plans are read from the very connection that the transaction holds, the
	// look-up ends by its timeout, and the transaction goes on.
	same := openOn(t, one, one)
	same.Counters = usage.New(usage.Options{Pool: one, Plans: same.plans, LookupTimeout: 100 * time.Millisecond})
	err := same.in(t, func(tx pgx.Tx) error {
		_, err := same.Consume(t.Context(), tx, of("projects", 1))
		return err
	})
	if !errors.Is(err, usage.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a cold cache on the transaction's own connection: %v, want ErrUnavailable", err)
	}
	if _, err := same.plans.Lookup(t.Context(), "w", time.Now()); err != nil { // as docs/usage.md says
		t.Fatal(err)
	}
	if _, err := same.consume(t, of("projects", 1)); err != nil {
		t.Errorf("a warm cache on the transaction's own connection: %v", err)
	}
	if _, err := same.ConsumeOnce(t.Context(), usage.Once{}, of("projects", 1)); err != nil {
		t.Errorf("the door on one connection: %v", err)
	}
	if diff := cmp.Diff(int64(4), setup.used(t, "w", "projects")); diff != "" {
		t.Errorf("used (-want +got):\n%s", diff)
	}
}
