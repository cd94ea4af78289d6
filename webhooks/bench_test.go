package webhooks_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headroomhq/headroom/webhooks"
)

// senders is how many deliveries are under way at once for each core, as in a burst.
const senders = 8

// What the door does: read, verify, sniff, one transaction, answer. Each delivery is
// of another event, of as many subscriptions as the name says.
func BenchmarkDeliveries(b *testing.B) {
	for _, subscriptions := range []int64{1, 10_000} {
		b.Run(fmt.Sprintf("of_%d_subscriptions", subscriptions), func(b *testing.B) {
			h := newHouse(b, webhooks.ModeLive)
			var sent atomic.Int64
			parallel(b, func() error {
				n := sent.Add(1)
				body := largeEvent(n, n%subscriptions)
				if answer := h.post(b, body, header(body, newSecret, noon)); answer.Code != http.StatusOK {
					return fmt.Errorf("answered %d", answer.Code)
				}
				return nil
			})
		})
	}
}

// What the same bodies cost as rows of a table without anything else, each its own
// transaction.
func BenchmarkPlainInserts(b *testing.B) {
	h := newHouse(b, webhooks.ModeLive)
	if _, err := h.pool.Exec(b.Context(), `CREATE TABLE plain (id bigint PRIMARY KEY, body bytea)`); err != nil {
		b.Fatal(err)
	}
	var sent atomic.Int64
	parallel(b, func() error {
		n := sent.Add(1)
		_, err := h.pool.Exec(b.Context(), `INSERT INTO plain VALUES ($1, $2)`, n, largeEvent(n, n))
		return err
	})
}

func parallel(b *testing.B, step func() error) {
	b.Helper()
	b.SetParallelism(senders)
	b.ResetTimer()
	b.RunParallel(func(loop *testing.PB) {
		for loop.Next() {
			if err := step(); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "per_second")
}

// largeEvent has about the size of a real one, 5 KB.
func largeEvent(n, subscription int64) []byte {
	return []byte(event(fmt.Sprintf("evt_%d", n), "customer.subscription.updated",
		fmt.Sprintf(`{"id":"sub_%d","object":"subscription","customer":"cus_%d","pad":%q}`, subscription, subscription, strings.Repeat("metadata ", 550))))
}
