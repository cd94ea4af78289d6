package usage_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// durable is on a server that waits for its disk, as those of others do.
func durable(b *testing.B) (*house, *pgxpool.Pool) {
	b.Helper()
	server := schematest.DurablePostgresServer(b)
	pool := schematest.Pool(b, server.URL(), 32)
	return openOn(b, pool, schematest.Pool(b, server.URL(), 2), plan("free", features{"projects": 1 << 50})), pool
}

const hotCallers = 32

// atOnce runs b.N calls from so many goroutines and reports the rate.
func atOnce(b *testing.B, callers int, call func() error) float64 {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wait sync.WaitGroup
	b.ResetTimer()
	for range callers {
		wait.Go(func() {
			for left.Add(-1) >= 0 {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	rate := float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(rate, "changes/s")
	return rate
}

// BenchmarkOneRow is one counter that all change at once, beside what PostgreSQL does
// with a plain guarded UPDATE of one row, which is the ceiling of any counter that commits
// each change by itself.
func BenchmarkOneRow(b *testing.B) {
	h, pool := durable(b)
	h.must(b, of("projects", 1))
	if _, err := pool.Exec(b.Context(), `create table plain (id int primary key, n bigint) with (fillfactor = 50); insert into plain values (1, 0)`); err != nil {
		b.Fatal(err)
	}
	const guarded = `update plain set n = n + 1 where id = 1 and n <= 1125899906842624 - 1`
	ctx := b.Context()
	for _, callers := range []int{1, hotCallers} {
		var ceiling, inTx float64
		name := func(s string) string { return fmt.Sprintf("%s/callers=%d", s, callers) }
		b.Run(name("plain UPDATE"), func(b *testing.B) {
			ceiling = atOnce(b, callers, func() error { _, err := pool.Exec(ctx, guarded); return err })
		})
		b.Run(name("plain UPDATE in a transaction"), func(b *testing.B) {
			inTx = atOnce(b, callers, func() error {
				return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, guarded); return err })
			})
		})
		b.Run(name("Consume in a transaction"), func(b *testing.B) {
			rate := atOnce(b, callers, func() error {
				return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { _, err := h.Consume(ctx, tx, of("projects", 1)); return err })
			})
			b.ReportMetric(rate/inTx, "of-the-plain-transaction")
		})
		b.Run(name("ConsumeOnce"), func(b *testing.B) {
			rate := atOnce(b, callers, func() error { _, err := h.ConsumeOnce(ctx, usage.Once{}, of("projects", 1)); return err })
			b.ReportMetric(rate/ceiling, "of-the-ceiling")
		})
		b.Run(name("ConsumeOnce with a key"), func(b *testing.B) {
			var n atomic.Int64
			rate := atOnce(b, callers, func() error {
				once := usage.Once{Scope: b.Name(), Key: fmt.Sprintf("%d-%d", b.N, n.Add(1))}
				_, err := h.ConsumeOnce(ctx, once, of("projects", 1))
				return err
			})
			b.ReportMetric(rate/ceiling, "of-the-ceiling")
		})
		b.Run(name("ConsumeAll of 100"), func(b *testing.B) {
			batch := make([]usage.Change, 100)
			for i := range batch {
				batch[i] = of("projects", 1)
			}
			rate := atOnce(b, callers, func() error {
				return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { _, err := h.ConsumeAll(ctx, tx, batch); return err })
			})
			b.ReportMetric(100*rate, "units/s")
		})
	}
}

// BenchmarkThresholds is Consume below every threshold, between two that were told of,
// and without a limit.
func BenchmarkThresholds(b *testing.B) {
	_, pool := durable(b)
	ctx := b.Context()
	for name, c := range map[string]struct{ limit, used int64 }{
		"below": {1 << 50, 0}, "above 80 percent": {1 << 50, 1<<50 - 1<<47}, "unlimited": {-1, 0},
	} {
		b.Run(name, func(b *testing.B) {
			odd, _ := fixedOn(b, pool, features{"projects": c.limit})
			if _, err := pool.Exec(ctx, `delete from usage_counters; delete from usage_thresholds`); err != nil {
				b.Fatal(err)
			}
			tx, err := pool.Begin(ctx) // one transaction: without the disk
			if err != nil {
				b.Fatal(err)
			}
			defer tx.Rollback(ctx)
			if _, err := odd.Consume(ctx, tx, of("projects", c.used)); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := odd.Consume(ctx, tx, of("projects", 1)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkResources asks about one of 10,000 resources.
func BenchmarkResources(b *testing.B) {
	_, pool := durable(b)
	ctx := b.Context()
	const n = 10_000
	_, err := pool.Exec(ctx, `insert into usage_counters (workspace_id, feature_key, count, registered) values ('w', 'projects', $1, $1)`, n)
	if err != nil {
		b.Fatal(err)
	}
	_, err = pool.Exec(ctx, `insert into usage_resources (workspace_id, feature_key, resource_id, quantity, created_at)
		select 'w', 'projects', 'p' || lpad(i::text, 5, '0'), 1, '2026-01-01'::timestamptz + i * interval '1 minute' from generate_series(1, $1) i`, n)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `vacuum analyze usage_resources`); err != nil {
		b.Fatal(err)
	}
	for _, limit := range []int64{n, n - 5, n / 2, 5} {
		odd, _ := fixedOn(b, pool, features{"projects": limit})
		for _, at := range []int{1, n / 2, n} {
			b.Run(fmt.Sprintf("check/limit=%d/resource=%d", limit, at), func(b *testing.B) {
				err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
					for b.Loop() {
						err := odd.CheckResource(ctx, tx, "w", "projects", fmt.Sprintf("p%05d", at))
						if locked := int64(at) > limit; (err != nil) != locked {
							return fmt.Errorf("resource %d under a limit of %d: %w", at, limit, err)
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			})
		}
		b.Run(fmt.Sprintf("list/limit=%d", limit), func(b *testing.B) {
			for b.Loop() {
				if _, err := odd.Resources(ctx, usage.ResourceQuery{WorkspaceID: "w", Feature: "projects"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
