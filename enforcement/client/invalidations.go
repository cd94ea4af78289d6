package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

const (
	// heartbeat is how often the server tells that it is there while there is no
	// news; twice as long in silence counts as lost.
	heartbeat = 5 * time.Second
	// placeKept is how long the server keeps the place of a process that is gone.
	placeKept = 30 * time.Second
	// askPatience bounds a question to the server.
	askPatience = 5 * time.Second
	// The pause between two attempts to be heard from again doubles from the first
	// to the longest. A connection that is back ends it.
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// PlanCache is what Invalidations keeps honest. subscriptions.Cache is one.
type PlanCache interface {
	// Invalidate makes whatever is cached below the revision unusable; revision
	// 0 drops what is cached, whatever it is.
	Invalidate(workspace string, revision int64)
	// Expire makes everything unusable that was read before.
	Expire()
}

// InvalidationsOptions are all required but Applied.
type InvalidationsOptions struct {
	JetStream jetstream.JetStream
	Topology  schemas.Topology
	Plans     PlanCache
	// Applied is told of each event when the cache knows it, and how long that is
	// after the event: by this machine's clock and the publisher's, see the event's time.
	Applied func(after time.Duration)
	Log     *slog.Logger
}

// Invalidations tells a process's plan cache of every plan.invalidated event.
//
//	headroom.plans.invalidated.*  ─ a consumer a process, in order, no acks ─►  Plans.Invalidate
//	lost: connection, consumer, stream, an event, the server's sign of life ─►  Plans.Expire
//
// Whatever was lost, it begins anew with what is new and makes the cache read
// everything again, as soon as the connection is back and once more when events
// flow: there is no place in the stream to be found again, so nothing that the
// server may have forgotten matters. While all goes well nothing is expired.
type Invalidations struct {
	options InvalidationsOptions
	hearer  hearer
}

// NewInvalidations does not talk to the server yet.
func NewInvalidations(o InvalidationsOptions) *Invalidations {
	return &Invalidations{options: o, hearer: hearer{plans: o.Plans, applied: o.Applied, log: o.Log}}
}

// Run tells the cache of each event until ctx ends, and then returns nil. It waits
// for a connection, and for a stream, that is not there yet. An error means that
// the connection was closed for good: the cache would go on with plans that have
// changed.
func (i *Invalidations) Run(ctx context.Context) error {
	conn := i.options.JetStream.Conn()
	changes := conn.StatusChanged(nats.CONNECTED, nats.RECONNECTING, nats.CLOSED)
	defer conn.RemoveStatusListener(changes)
	for failures := 0; ; {
		heard, err := i.listen(ctx, changes)
		if heard {
			failures = 0
		}
		if ctx.Err() != nil {
			return nil
		}
		if conn.IsClosed() {
			return errors.New("hear invalidations: the connection to nats was closed")
		}
		if failures == 0 {
			i.options.Log.Warn("invalidations are not heard, plans are read again when they are", "error", err)
		}
		failures++
		i.rest(ctx, changes, pauseAfter(failures))
	}
}

// listen hears events until something is lost, and reports whether any could have
// been heard.
func (i *Invalidations) listen(ctx context.Context, changes chan nats.Status) (heard bool, err error) {
	forget(changes) // what happened until here is made up for below
	if !i.options.JetStream.Conn().IsConnected() {
		return false, errors.New("nats is not connected")
	}
	consumer, err := i.begin(ctx)
	if err != nil {
		return false, err
	}
	defer i.end(ctx, consumer)
	lost := make(chan error, 1)
	place := consumer.CachedInfo().Delivered
	reading, err := consumer.Consume(func(m jetstream.Msg) { i.next(m, &place) },
		jetstream.PullHeartbeat(heartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			select {
			case lost <- err:
			default: // one is enough
			}
		}))
	if err != nil {
		return false, fmt.Errorf("read invalidations: %w", err)
	}
	defer func() {
		reading.Stop()
		<-reading.Closed()
	}()
	// What was committed before the server took the place is read, what comes after it is heard.
	i.options.Plans.Expire()
	i.options.Log.Debug("invalidations are heard")
	select {
	case <-ctx.Done():
		return true, nil
	case err := <-lost:
		return true, fmt.Errorf("read invalidations: %w", err)
	case status := <-changes:
		return true, fmt.Errorf("read invalidations: the connection is %s", status)
	case <-reading.Closed():
		return true, errors.New("read invalidations: the subscription was closed")
	}
}

// begin makes the server keep a place after the newest event.
func (i *Invalidations) begin(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	name := i.options.Topology.Stream(schemas.StreamPlans)
	consumer, err := i.options.JetStream.CreateConsumer(ctx, name, jetstream.ConsumerConfig{
		Description:   "a process that is told what invalidates its plans",
		FilterSubject: i.options.Topology.Invalidated("*"), DeliverPolicy: jetstream.DeliverNewPolicy,
		AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: placeKept, Replicas: 1, MemoryStorage: true,
	})
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", name, err)
	}
	return consumer, nil
}

// end gives the place back; the server would do so by itself.
func (i *Invalidations) end(ctx context.Context, consumer jetstream.Consumer) {
	if !i.options.JetStream.Conn().IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	info := consumer.CachedInfo()
	_ = i.options.JetStream.DeleteConsumer(ctx, info.Stream, info.Name)
}

// next takes one event. The stream holds nothing else, so one whose number does
// not follow its predecessor's tells that something was lost on the way, or
// deleted before it could be sent.
func (i *Invalidations) next(m jetstream.Msg, place *jetstream.SequenceInfo) {
	i.hearer.hear(m.Subject(), m.Data())
	is, err := m.Metadata()
	if err != nil || is.Sequence.Consumer != place.Consumer+1 || is.Sequence.Stream != place.Stream+1 {
		i.options.Plans.Expire()
		i.options.Log.Warn("invalidations were missed, all plans are read again", "error", err)
	}
	if err == nil {
		place.Consumer, place.Stream = is.Sequence.Consumer, is.Sequence.Stream
	}
}

// rest waits, at most until there is a connection again.
func (i *Invalidations) rest(ctx context.Context, changes chan nats.Status, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case status, open := <-changes:
			if status == nats.CONNECTED {
				i.options.Plans.Expire()
			}
			if !open || status != nats.RECONNECTING {
				return
			}
		}
	}
}

func forget(changes chan nats.Status) {
	for {
		select {
		case _, open := <-changes:
			if open {
				continue
			}
		default:
		}
		return
	}
}

func pauseAfter(failures int) time.Duration {
	return min(firstPause<<min(failures-1, 10), longestPause)
}
