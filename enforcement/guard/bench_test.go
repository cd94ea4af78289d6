package guard_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// hotCallers is how many goroutines want one key.
const hotCallers = 16

// BenchmarkHotKey is many callers and one key: guards that count 100 rows and insert
// nothing, beside the ceiling, which is BEGIN, the bare advisory lock and COMMIT: on a
// connection for each caller, and on one.
func BenchmarkHotKey(b *testing.B) {
	ceilings := map[string]float64{}
	ceiling := func() float64 { return max(ceilings["ceiling"], ceilings["ceiling_of_one_connection"]) }
	for name, connections := range map[string]int32{"ceiling": hotCallers, "ceiling_of_one_connection": 1} {
		b.Run(name, func(b *testing.B) {
			pool := hotPool(b, connections)
			ceilings[name] = hot(b, func(ctx context.Context) error {
				return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", "oe:hot:projects")
					return err
				})
			})
		})
	}
	b.Run("process", func(b *testing.B) {
		lock := guard.NewProcessLock(guard.ProcessOptions[struct{}]{})
		client := newClient[struct{}](b, unlimited(), lock)
		b.ReportMetric(hot(b, func(ctx context.Context) error {
			_, _, err := guard.Guard(ctx, client, request("hot"), guard.Callbacks[int, struct{}]{
				Count: func(context.Context, struct{}) (guard.Usage, error) { return guard.Usage{Total: 100}, nil },
				Act:   func(context.Context, struct{}) (int, error) { return 1, nil },
			})
			return err
		})/ceiling(), "x_ceiling")
	})
	for _, name := range []string{"advisory", "row", "serializable"} {
		b.Run(name, func(b *testing.B) {
			pool := hotPool(b, hotCallers)
			client := newClient(b, unlimited(), databaseLocks[name](b, pool))
			callbacks := projects("hot", nil)
			callbacks.Act = func(context.Context, pgx.Tx) (int64, error) { return 1, nil }
			b.ReportMetric(hot(b, func(ctx context.Context) error {
				_, _, err := guard.Guard(ctx, client, request("hot"), callbacks)
				return err
			})/ceiling(), "x_ceiling")
		})
	}
}

func unlimited() *plan {
	return &plan{answer: guard.Resolution{Kind: guard.KindLimit, Limit: schemas.Unlimited}}
}

func hotPool(b *testing.B, connections int32) *pgxpool.Pool {
	b.Helper()
	pool := schematest.Pool(b, database(b), connections)
	if _, err := pool.Exec(b.Context(), "INSERT INTO projects (organization) SELECT 'hot' FROM generate_series(1, 100)"); err != nil {
		b.Fatal(err)
	}
	return pool
}

// hot is how many calls there were in a second.
func hot(b *testing.B, call func(context.Context) error) float64 {
	b.Helper()
	b.SetParallelism(hotCallers)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := call(b.Context()); err != nil {
				b.Error(err)
				return
			}
		}
	})
	rate := float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(rate, "guards/s")
	return rate
}
