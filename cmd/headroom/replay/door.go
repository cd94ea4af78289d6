package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

// glance is how often a consumer is asked how far it is.
const glance = 2 * time.Millisecond

// DoorOptions is what a Door is opened with.
type DoorOptions struct {
	JetStream jetstream.JetStream
	// Topology names the streams and consumers, which must exist.
	Topology schemas.Topology
	// Overheard is called with each decision that no request of this door waits
	// for, in the order of the stream and never twice at once.
	Overheard func(schemas.DecisionMade)
	// Patience is how long an event may stay without effect before that is an
	// error; it has to be longer than an admission is put off.
	Patience time.Duration
}

// Door reaches a Headroom over JetStream, the way a service does: it publishes
// events and reads the decisions from their stream.
type Door struct {
	patience  time.Duration
	topology  schemas.Topology
	publisher *schemas.Publisher
	feed      *feed
	decisions jetstream.Stream
	consumers map[string]jetstream.Consumer
}

// OpenDoor begins to read decisions, from the present end of their stream on.
func OpenDoor(ctx context.Context, o DoorOptions) (*Door, error) {
	d := &Door{patience: o.Patience, topology: o.Topology, consumers: make(map[string]jetstream.Consumer)}
	var err error
	if d.decisions, err = o.JetStream.Stream(ctx, o.Topology.Stream(schemas.StreamDecisions)); err != nil {
		return nil, fmt.Errorf("open the stream of decisions: %w", err)
	}
	for _, name := range []string{schemas.ConsumerProgressed, schemas.ConsumerCompleted} {
		if d.consumers[name], err = o.JetStream.Consumer(ctx, o.Topology.Stream(schemas.StreamExecutions), name); err != nil {
			return nil, fmt.Errorf("open the consumer %s: %w", name, err)
		}
	}
	if d.feed, err = openFeed(ctx, d.decisions, o.Overheard); err != nil {
		return nil, err
	}
	if d.publisher, err = schemas.NewPublisher(o.JetStream, schemas.PublisherOptions{}); err != nil {
		d.feed.close()
		return nil, fmt.Errorf("open the door: %w", err)
	}
	return d, nil
}

// Close stops reading decisions; it does not close the connection.
func (d *Door) Close() {
	d.feed.close()
	d.publisher.Close()
}

// Request implements Headroom.
func (d *Door) Request(ctx context.Context, event schemas.Event[schemas.ExecutionRequested]) (schemas.DecisionMade, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.patience, ErrNoDecision)
	defer cancel()
	answer := d.feed.expect(keyOf(event.Source, event.ID))
	defer d.feed.forget(keyOf(event.Source, event.ID))
	if _, err := publish(ctx, d, d.topology.Requested(event.Data.WorkspaceID), event); err != nil {
		return schemas.DecisionMade{}, err
	}
	select {
	case decision := <-answer:
		return decision, nil
	case <-ctx.Done():
		return schemas.DecisionMade{}, fmt.Errorf("wait for the decision: %w", context.Cause(ctx))
	}
}

// Progress implements Headroom.
func (d *Door) Progress(ctx context.Context, event schemas.Event[schemas.ExecutionProgressed]) (*schemas.DecisionMade, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.patience, ErrNotApplied)
	defer cancel()
	answer := d.feed.expect(keyOf(event.Source, event.ID))
	defer d.feed.forget(keyOf(event.Source, event.ID))
	sequence, err := publish(ctx, d, d.topology.Progressed(event.Data.WorkspaceID), event)
	if err != nil {
		return nil, err
	}
	if err := d.applied(ctx, schemas.ConsumerProgressed, sequence); err != nil {
		return nil, err
	}
	// A decision is in its stream before its event is acknowledged, so whatever
	// this event brought about stands at or below the stream's end.
	info, err := d.decisions.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask for the end of the decisions: %w", err)
	}
	if err := d.feed.reach(ctx, info.State.LastSeq); err != nil {
		return nil, err
	}
	select {
	case decision := <-answer:
		return &decision, nil
	default:
		return nil, nil
	}
}

// Complete implements Headroom.
func (d *Door) Complete(ctx context.Context, event schemas.Event[schemas.ExecutionCompleted]) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d.patience, ErrNotApplied)
	defer cancel()
	sequence, err := publish(ctx, d, d.topology.Completed(event.Data.WorkspaceID), event)
	if err != nil {
		return err
	}
	return d.applied(ctx, schemas.ConsumerCompleted, sequence)
}

// applied waits until the consumer has settled everything up to the sequence.
func (d *Door) applied(ctx context.Context, consumer string, sequence uint64) error {
	ticker := time.NewTicker(glance)
	defer ticker.Stop()
	for {
		info, err := d.consumers[consumer].Info(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			return fmt.Errorf("ask the consumer %s how far it is: %w", consumer, err)
		case err == nil && info.AckFloor.Stream >= sequence:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the consumer %s: %w", consumer, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

func publish[T schemas.Data](ctx context.Context, d *Door, subject string, event schemas.Event[T]) (uint64, error) {
	body, err := schemas.Encode(event)
	if err != nil {
		return 0, fmt.Errorf("write the event: %w", err)
	}
	result := d.publisher.PublishAll(ctx, []schemas.Message{{Subject: subject, ID: event.ID, Body: body}})[0]
	if result.Err != nil {
		return 0, fmt.Errorf("publish the event: %w", result.Err)
	}
	return result.Sequence, nil
}
