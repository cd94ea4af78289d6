package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

// The pause before a decision whose handler failed comes again doubles.
const (
	firstRetry   = 100 * time.Millisecond
	longestRetry = 30 * time.Second
)

// DecisionsOptions choose decisions.
type DecisionsOptions struct {
	// Durable names the place in the stream: all who open the same name share the
	// work, and what was not handled while nobody was there comes when somebody is.
	// Letters, digits, - and _.
	Durable string
	// Workspace is whose decisions: all, if it is empty.
	Workspace string
}

// Decisions reads the stream of decisions, for an engine that works by events.
type Decisions struct {
	consumer jetstream.Consumer
	client   *Client
}

// OpenDecisions makes a durable consumer, or finds the one of that name. A new one
// begins with what is decided from now on, so open it before the first Request. The
// stream must exist.
func (c *Client) OpenDecisions(ctx context.Context, o DecisionsOptions) (*Decisions, error) {
	if !schemas.ValidID(o.Durable) {
		return nil, fmt.Errorf("open decisions: durable %q: must be letters, digits, dashes and underscores", o.Durable)
	}
	workspace := "*"
	if o.Workspace != "" {
		workspace = o.Workspace
	}
	consumer, err := c.js.CreateOrUpdateConsumer(ctx, c.topology.Stream(schemas.StreamDecisions), jetstream.ConsumerConfig{
		Durable:       o.Durable,
		Description:   "Decisions for " + c.source,
		DeliverPolicy: jetstream.DeliverNewPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       schemas.AckWait,
		MaxDeliver:    -1,
		FilterSubject: c.topology.Decision(workspace),
	})
	if err != nil {
		return nil, fmt.Errorf("open decisions: %w", err)
	}
	return &Decisions{consumer: consumer, client: c}, nil
}

// Run hands each decision to handle until ctx ends, and then returns nil. They come
// one at a time, in the order of the stream, at least once: fold what comes twice by
// its DecisionID. A decision is settled when handle returns nil; one whose handle
// failed, or took longer than schemas.AckWait, comes again later, behind others.
func (d *Decisions) Run(ctx context.Context, handle func(context.Context, schemas.DecisionMade) error) error {
	interrupted := jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
		d.client.log.Warn("reading decisions was interrupted", "error", err)
	})
	// A few at a time: what waits here counts towards its AckWait.
	reading, err := d.consumer.Consume(func(m jetstream.Msg) { d.take(ctx, m, handle) },
		interrupted, jetstream.PullMaxMessages(16))
	if err != nil {
		return fmt.Errorf("read decisions: %w", err)
	}
	select {
	case <-ctx.Done():
		reading.Stop()
		<-reading.Closed()
		return nil
	case <-reading.Closed():
		return errors.New("read decisions: the subscription was closed")
	}
}

func (d *Decisions) take(ctx context.Context, m jetstream.Msg, handle func(context.Context, schemas.DecisionMade) error) {
	log := d.client.log.With("subject", m.Subject())
	event, err := schemas.Decode[schemas.DecisionMade](m.Subject(), m.Data())
	if err != nil {
		log.Warn("message is no decision, skipped", "error", err)
		err = m.TermWithReason("no decision")
	} else if err = handle(ctx, event.Data); err != nil {
		pause := retryPause(m)
		log.Warn("decision not handled, it comes again", "decision", event.Data.DecisionID, "in", pause, "error", err)
		err = m.NakWithDelay(pause)
	} else {
		err = m.Ack()
	}
	if err != nil {
		log.Warn("decision not settled, it comes again", "error", err)
	}
}

func retryPause(m jetstream.Msg) time.Duration {
	pause := longestRetry
	if about, err := m.Metadata(); err == nil && about.NumDelivered < 10 {
		pause = min(firstRetry<<max(about.NumDelivered, 1)>>1, longestRetry)
	}
	return pause/2 + rand.N(pause/2) //nolint:gosec // spreading a pause needs no secret
}
