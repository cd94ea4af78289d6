package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

// PlanCache is what Invalidations keeps honest. subscriptions.Cache is one.
type PlanCache interface {
	// Invalidate makes whatever is cached below the revision unusable; revision
	// 0 drops what is cached, whatever it is.
	Invalidate(workspace string, revision int64)
}

// InvalidationsOptions are all required.
type InvalidationsOptions struct {
	JetStream jetstream.JetStream
	Topology  schemas.Topology
	Plans     PlanCache
	Log       *slog.Logger
}

// Invalidations tells a process's plan cache of every plan.invalidated event.
//
//	headroom.plans.invalidated.*  ─ ordered consumer, one a process, no acks ─►  Plans.Invalidate
//
// It reads on from where the stream ended when it was opened, so events of a
// time when the connection was down are made up for when it is back.
type Invalidations struct {
	consumer jetstream.Consumer
	plans    PlanCache
	log      *slog.Logger
}

// OpenInvalidations makes the server keep a place in the stream. Everything
// published after it returns is heard once Run runs; open it before the cache
// is first asked. The stream must exist.
func OpenInvalidations(ctx context.Context, o InvalidationsOptions) (*Invalidations, error) {
	name := o.Topology.Stream(schemas.StreamPlans)
	stream, err := o.JetStream.Stream(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("open invalidations: find stream %s: %w", name, err)
	}
	// A sequence rather than "new only": before the first event an ordered consumer that
	// lost its connection would begin anew at what is new by then.
	consumer, err := o.JetStream.OrderedConsumer(ctx, name, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{o.Topology.Invalidated("*")},
		DeliverPolicy:  jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:    stream.CachedInfo().State.LastSeq + 1,
	})
	if err != nil {
		return nil, fmt.Errorf("open invalidations: read stream %s: %w", name, err)
	}
	return &Invalidations{consumer: consumer, plans: o.Plans, log: o.Log}, nil
}

// Run tells the cache of each event until ctx ends, and then returns nil. Any
// other end is an error: the cache would go on with plans that have changed.
func (i *Invalidations) Run(ctx context.Context) error {
	failed := jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
		i.log.Warn("reading invalidations was interrupted", "error", err)
	})
	reading, err := i.consumer.Consume(i.apply, failed)
	if err != nil {
		return fmt.Errorf("read invalidations: %w", err)
	}
	select {
	case <-ctx.Done():
		reading.Stop()
		<-reading.Closed()
		return nil
	case <-reading.Closed():
		return errors.New("read invalidations: the subscription was closed")
	}
}

// apply tells the cache of one event. Of one that can't be read it believes the
// subject and drops the workspace's plan: reading it again costs one query,
// keeping it could decide on terms that are gone.
func (i *Invalidations) apply(m jetstream.Msg) {
	event, err := schemas.Decode[schemas.PlanInvalidated](m.Subject(), m.Data())
	if err != nil {
		workspace := m.Subject()[strings.LastIndexByte(m.Subject(), '.')+1:]
		i.plans.Invalidate(workspace, 0)
		i.log.Warn("invalidation is malformed, plan dropped from the cache", "subject", m.Subject(), "error", err)
		return
	}
	i.plans.Invalidate(event.Data.WorkspaceID, event.Data.PlanRevision)
	i.log.Debug("plan invalidated", "workspace", event.Data.WorkspaceID, "revision", event.Data.PlanRevision, "reason", event.Data.Reason)
}
