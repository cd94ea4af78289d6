package subscriptions_test

import (
	"testing"
	"time"

	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

func TestTenThousandDueRenewalsAreDoneOnceByFourWorkers(t *testing.T) {
	t.Parallel()
	const due = 10_000
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
	wantRenewedOnce(t, pool, due+1)
}
