package subscriptions_test

import (
	"testing"
	"time"

	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

func TestDueRenewalsAreDoneOnceByFourWorkers(t *testing.T) {
	t.Parallel()
	renewDue(t, 600)
}

// BenchmarkTenThousandDueRenewals is the same with as many as a busy midnight has.
func BenchmarkTenThousandDueRenewals(b *testing.B) {
	const due = 10_000
	for b.Loop() {
		b.ReportMetric(due/renewDue(b, due).Seconds(), "renewals/s")
	}
}

// renewDue has four workers renew that many subscriptions.
func renewDue(t testing.TB, due int) time.Duration {
	t.Helper()
	s, pool := newStore(t)
	apply(t, s)
	manyDue(t, s, pool, due)
	execute(t, pool, `DELETE FROM outbox`)
	began := time.Now()
	for range 4 {
		lifecycle(t, subscriptions.Policy{}, schematest.Logger(t))
	}
	nothingDue(t, pool)
	took := time.Since(began)
	t.Logf("%d renewals by 4 workers in %s: %.0f a second", due, took.Round(time.Millisecond), float64(due)/took.Seconds())
	wantRenewedOnce(t, pool, int64(due)+1)
	return took
}
