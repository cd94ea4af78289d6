package consumers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"
)

// handler judges a batch: one verdict per message, see errors.go.
type handler interface {
	handle(ctx context.Context, batch []*message) []error
}

// lane works through one consumer's messages, batch by batch, one at a time.
type lane struct {
	kind     string
	consumer jetstream.Consumer
	handler  handler
	settler  *settler
	batch    int
	bytes    int // most bytes to hold, and as many may be on their way here
	running  *atomic.Int64
	probe    probe
	log      *slog.Logger
}

// The server shows at this interval that it is still there while there is
// nothing to deliver; twice as long without a sign and the lane looks for its consumer.
const (
	pullHeartbeat = 2 * time.Second
	pullExpiry    = 10 * time.Second
)

// run works until ctx ends; then it asks for no more, finishes what was
// delivered, and returns nil. A message that the server was sending at that very
// moment is nobody's until the ack wait is over, and then another lane's. work is
// the context of the work itself, which outlives ctx. A consumer that ends by
// itself, because it was deleted or the connection closed, is an error.
func (l *lane) run(ctx, work context.Context) error {
	queue := make(chan jetstream.Msg, l.batch)
	room := semaphore.NewWeighted(int64(l.bytes))
	disturbed := make(chan error, 1)
	consuming, err := l.consumer.Consume(l.enqueue(context.WithoutCancel(ctx), room, queue),
		jetstream.PullMaxMessagesWithBytesLimit(l.batch, l.bytes),
		jetstream.PullHeartbeat(pullHeartbeat), jetstream.PullExpiry(pullExpiry),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			select {
			case disturbed <- err:
			default:
			}
		}))
	if err != nil {
		return fmt.Errorf("consume %s: %w", l.kind, err)
	}
	closed := consuming.Closed()
	stop := context.AfterFunc(ctx, consuming.Drain)
	defer stop()
	go func() {
		defer close(queue)
		l.watch(work, consuming, watched{disturbed, closed})
	}()
	l.running.Add(1)
	defer l.running.Add(-1)
	for first := range queue {
		batch := collect(first, queue, l.batch)
		l.work(work, batch)
		for _, m := range batch {
			room.Release(l.weight(m))
		}
	}
	if ctx.Err() == nil {
		return fmt.Errorf("consume %s: the consumer was deleted or the connection closed", l.kind)
	}
	return nil
}

// enqueue hands messages on to the lane once there is room for their bytes.
func (l *lane) enqueue(ctx context.Context, room *semaphore.Weighted, queue chan<- jetstream.Msg) jetstream.MessageHandler {
	return func(m jetstream.Msg) {
		if err := room.Acquire(ctx, l.weight(m)); err != nil {
			l.log.ErrorContext(ctx, "message not taken, it will come again", "kind", l.kind, "error", err)
			return
		}
		queue <- m
	}
}

func (l *lane) weight(m jetstream.Msg) int64 { return int64(min(len(m.Data()), l.bytes)) }

// watched is what a consuming tells of itself.
type watched struct {
	disturbed <-chan error
	closed    <-chan struct{}
}

// watch waits until the consuming has ended, and ends it if the consumer is gone:
// a lane must not wait for ever for a consumer that nobody serves.
func (l *lane) watch(ctx context.Context, consuming jetstream.ConsumeContext, w watched) {
	for {
		select {
		case <-w.closed:
			return
		case err := <-w.disturbed:
			l.log.WarnContext(ctx, "consuming is disturbed", "kind", l.kind, "error", err)
			if l.isGone(ctx) {
				consuming.Stop()
			}
		}
	}
}

func (l *lane) isGone(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, pullHeartbeat)
	defer cancel()
	_, err := l.consumer.Info(ctx)
	return errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound)
}

func (l *lane) work(ctx context.Context, raws []jetstream.Msg) {
	l.probe.at(l.kind, "pulled")
	batch := make([]*message, 0, len(raws))
	for _, raw := range raws {
		m, err := newMessage(raw)
		if err != nil {
			l.log.ErrorContext(ctx, "message without metadata ignored", "kind", l.kind, "subject", raw.Subject(), "error", err)
			continue
		}
		batch = append(batch, m)
	}
	release := l.settler.hold(batch)
	verdicts := l.judge(ctx, batch)
	release()
	l.settler.settle(ctx, batch, verdicts)
}

// judge asks the handler for the batch. If that panics each message is asked for
// alone, so that one bad message does not take the others with it; what was
// done for the batch already is done again without effect.
func (l *lane) judge(ctx context.Context, batch []*message) []error {
	verdicts, fault := l.try(ctx, batch)
	if fault == nil {
		return verdicts
	}
	l.log.ErrorContext(ctx, "handler panicked, its batch is handled one by one", "kind", l.kind,
		"messages", len(batch), "error", fault, "stack", string(fault.stack))
	verdicts = make([]error, len(batch))
	for i := range batch {
		one, fault := l.try(ctx, batch[i:i+1])
		if fault != nil {
			verdicts[i] = fault
			continue
		}
		verdicts[i] = one[0]
	}
	return verdicts
}

func (l *lane) try(ctx context.Context, batch []*message) (verdicts []error, fault *panicked) {
	defer func() {
		if value := recover(); value != nil {
			fault = &panicked{value: value, stack: debug.Stack()}
		}
	}()
	return l.handler.handle(ctx, batch), nil
}
