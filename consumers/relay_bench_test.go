package consumers_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/subscriptions"
)

// From the beginning of a transaction that writes news to a subscriber that has it. What
// is over the transaction's own time is the notification, the pass and NATS.
func BenchmarkNewsFromTransactionToSubscriber(b *testing.B) {
	n := newNewsroom(b)
	news := make(chan *nats.Msg, 1)
	if _, err := n.nats.ChanSubscribe(n.topology.Invalidated("*"), news); err != nil {
		b.Fatal(err)
	}
	n.relay()
	for b.Loop() {
		if err := write(b.Context(), n.pool, "ws000", subscriptions.NewsInvalidated); err != nil {
			b.Fatal(err)
		}
		<-news
	}
}
