package consumers

import (
	"context"
	"log/slog"
	"time"
)

const (
	// broadcastTimeout bounds one broadcast.
	broadcastTimeout = time.Second
	// broadcastQueue is how many may wait for the one before.
	broadcastQueue = 1024
)

// broadcast passes invalidations on to engines that do not read the stream. It keeps
// nobody waiting: what does not fit into its queue, or cannot be sent, is lost there.
type broadcast struct {
	send  func(ctx context.Context, body []byte) error
	queue chan []byte
	stats *RelayStats
	log   *slog.Logger
}

// newBroadcast is nil without somebody to send to.
func (r *Relay) newBroadcast() *broadcast {
	if r.options.Broadcast == nil {
		return nil
	}
	return &broadcast{send: r.options.Broadcast, queue: make(chan []byte, broadcastQueue), stats: &r.stats, log: r.options.Log}
}

// offer never waits.
func (b *broadcast) offer(body []byte) {
	if b == nil {
		return
	}
	select {
	case b.queue <- body:
	default:
		b.stats.unheard.Add(1)
	}
}

// run sends what is offered until close, and what waits then for broadcastTimeout
// at most.
func (b *broadcast) run(ctx context.Context) {
	failing := false
	for body := range b.queue {
		sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), broadcastTimeout)
		err := b.send(sending, body)
		cancel()
		switch {
		case err == nil:
			failing = false
			b.stats.broadcast.Add(1)
			continue
		case !failing:
			failing = true
			b.log.WarnContext(ctx, "invalidations are not broadcast, who waits for them reads old plans until they are too old", "error", err)
		}
		b.stats.unheard.Add(1)
		if ctx.Err() != nil {
			return
		}
	}
}
