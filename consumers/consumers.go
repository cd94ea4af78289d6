package consumers

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/headroomhq/headroom/schemas"
)

// The kinds of messages, named as their consumers and in dead letters.
const (
	kindRequested  = schemas.ConsumerRequested
	kindProgressed = schemas.ConsumerProgressed
	kindCompleted  = schemas.ConsumerCompleted
)

// roomExecutions is the room of dead letters from the executions stream.
const roomExecutions = "executions"

// mostUnsettled bounds what is remembered of unsettled messages: more than the
// server hands out before some are settled.
const mostUnsettled = 50_000

// Consumers handle the execution events and the renewals, and keep the ledger. Make them with New
// and call Run once.
type Consumers struct {
	options Options
	stats   *Stats
	probe   probe
	running *atomic.Int64
	ready   atomic.Bool
}

// New checks the options. It does not talk to any server yet.
func New(o Options) (*Consumers, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Consumers{options: o, stats: &Stats{}, probe: unwatched{}, running: &atomic.Int64{}}, nil
}

// Stats are the consumers' counts, live.
func (c *Consumers) Stats() *Stats { return c.stats }

// Ready reports whether all lanes are consuming and NATS is connected. It is false
// before Run and from the moment that Run's context ends.
func (c *Consumers) Ready() bool {
	return c.ready.Load() && int(c.running.Load()) == len(c.kinds())*c.options.Workers && c.options.NATS.IsConnected()
}

// Run consumes until ctx ends. Then it pulls no more, finishes what was
// delivered, sees the acknowledgements off and returns nil: no decision is lost, and
// none is repeated but for what DrainTimeout cut short. The streams and consumers
// must exist (schemas.Topology.Ensure). An error of one lane, such as a consumer
// deleted under it, ends them all.
func (c *Consumers) Run(ctx context.Context) error {
	publisher, err := schemas.NewPublisher(c.options.JetStream, schemas.PublisherOptions{})
	if err != nil {
		return fmt.Errorf("run consumers: %w", err)
	}
	defer publisher.Close()
	group, ctx := errgroup.WithContext(ctx)
	work, cancel := outlive(ctx, c.options.DrainTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.ready.Store(false) })
	defer stop()
	lanes, err := c.lanes(ctx, publisher)
	if err != nil {
		return fmt.Errorf("run consumers: %w", err)
	}
	c.ready.Store(true)
	for _, l := range lanes {
		group.Go(func() error { return l.run(ctx, work) })
	}
	if c.options.Ledger != nil {
		folder := c.folder(publisher)
		group.Go(func() error { return folder.run(ctx, work) })
	}
	err = group.Wait()
	return errors.Join(err, c.flush(work))
}

// outlive is a context that ends some time after ctx does.
func outlive(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(after, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// flush waits until the server has the last acknowledgements.
func (c *Consumers) flush(ctx context.Context) error {
	if c.options.NATS.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := c.options.NATS.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("flush acknowledgements, unheard messages will come again: %w", err)
	}
	return nil
}

// lanes makes the lanes of all kinds; those of a kind share its state.
func (c *Consumers) lanes(ctx context.Context, p *schemas.Publisher) ([]*lane, error) {
	o := c.options
	decisions, err := o.JetStream.Stream(ctx, o.Topology.Stream(schemas.StreamDecisions))
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", o.Topology.Stream(schemas.StreamDecisions), err)
	}
	var all []*lane
	for _, kind := range c.kinds() {
		stream := o.Topology.Stream(kind.stream)
		consumer, err := o.JetStream.Consumer(ctx, stream, kind.name)
		if err != nil {
			return nil, fmt.Errorf("open consumer %s of stream %s: %w", kind.name, stream, err)
		}
		remembered := newMemory(mostUnsettled)
		h := c.handler(kind.name, handlerParts{publisher: p, decisions: decisions, memory: remembered})
		s := c.settler(kind, p, remembered, consumer.CachedInfo().Config.AckWait)
		for range o.Workers {
			all = append(all, c.lane(kind.name, consumer, h, s))
		}
	}
	return all, nil
}

// messageKind is a kind of messages, the stream that it comes from and the room of its
// dead letters.
type messageKind struct {
	name   string
	stream schemas.StreamKind
	room   string
}

// kinds are those that these consumers handle.
func (c *Consumers) kinds() []messageKind {
	all := []messageKind{
		{kindRequested, schemas.StreamExecutions, roomExecutions},
		{kindProgressed, schemas.StreamExecutions, roomExecutions},
		{kindCompleted, schemas.StreamExecutions, roomExecutions},
	}
	if c.options.Renewals != nil {
		all = append(all, messageKind{kindRenewed, schemas.StreamSubscriptions, roomSubscriptions})
	}
	return all
}

func (c *Consumers) lane(kind string, consumer jetstream.Consumer, h handler, s *settler) *lane {
	return &lane{
		kind: kind, consumer: consumer, handler: h, settler: s, running: c.running, probe: c.probe,
		batch: c.options.BatchSize, bytes: c.mostBytes(), log: c.options.Log,
	}
}

// mostBytes is how many bytes one reader asks a server for before it has worked
// off some: at least two messages of the largest size.
func (c *Consumers) mostBytes() int { return max(8<<20, 2*int(c.options.NATS.MaxPayload())) }

func (c *Consumers) settler(kind messageKind, p publisher, remembered *memory, ackWait time.Duration) *settler {
	o := c.options
	return &settler{
		kind: kind.name, memory: remembered, stats: c.stats, maxAttempts: o.MaxAttempts, ackWait: ackWait,
		letters: c.deadLetters(p, kind.room, kind.name), now: o.Now, log: o.Log, probe: c.probe,
	}
}

func (c *Consumers) deadLetters(p publisher, room, kind string) *deadLetters {
	return &deadLetters{
		publisher: p, subject: c.options.Topology.DeadLetter(room, kind),
		maxBytes: int(c.options.NATS.MaxPayload()), now: c.options.Now,
	}
}

// handlerParts is what a handler shares with others.
type handlerParts struct {
	publisher publisher
	decisions schemas.MessageReader
	memory    *memory
}

func (c *Consumers) handler(kind string, parts handlerParts) handler {
	o := c.options
	out := &answers{
		writer: schemas.NewDecisionWriter(schemas.DecisionWriterOptions{
			Store:  probed{publisher: parts.publisher, kind: kind, probe: c.probe},
			Stored: parts.decisions, Topology: o.Topology, Shadow: o.Shadow,
		}),
		replies: &replies{nats: o.NATS, log: o.Log}, stats: c.stats,
	}
	b := &breaker{}
	switch kind {
	case kindRequested:
		return &requested{
			enforcer: o.Enforcer, answers: out, memory: parts.memory, breaker: b, stats: c.stats,
			budget: o.UnavailableBudget, fence: o.RebuildFence, now: o.Now, probe: c.probe,
		}
	case kindProgressed:
		return &progressed{enforcer: o.Enforcer, answers: out, breaker: b, now: o.Now, log: o.Log, probe: c.probe}
	case kindRenewed:
		return &renewed{
			renewals: o.Renewals, plans: o.Plans, enforcer: o.Enforcer, memory: parts.memory, breaker: b,
			patience: o.RenewalPatience, now: o.Now, log: o.Log, probe: c.probe,
		}
	default:
		return &completed{enforcer: o.Enforcer, breaker: b, stats: c.stats, now: o.Now, log: o.Log, probe: c.probe}
	}
}
