package webhooks_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks"
	"github.com/headroomhq/headroom/webhooks/stripetest"
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

// What a look-up costs from the claim to the commit, with a Stripe that answers at once:
// each subscription has five events, which cost one look-up together.
func BenchmarkEventsToRows(b *testing.B) {
	for name, keyless := range map[string]bool{"fetched": false, "folded": true} {
		b.Run(name, func(b *testing.B) {
			sh := newSite(b, subscriptions.Policy{}).open(shopOptions{keyless: keyless, idle: true})
			for i := range b.N {
				sub := sh.subscribe(stripetest.SubscribeParams{Metadata: map[string]string{"workspace_id": fmt.Sprintf("ws_%d", i)}})
				sh.update(sub.ID, stripetest.UpdateParams{Quantity: 2})
			}
			sh.arrive()
			sh.ForgetCalls()
			b.ResetTimer()
			sh.employ(shopOptions{})
			sh.settle()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "subscriptions/s")
			b.ReportMetric(float64(sh.states("done"))/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(len(sh.Calls()))/float64(sh.states("done")), "calls/event")
		})
	}
}
