package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/schemas"
)

// doorPatience is the longest that a caller at a door waits while a service is away:
// HTTP callers give up not much later.
const doorPatience = 5 * time.Second

// doors are where callers wait for their answers.
type doors struct {
	executions *api.Executions
	publisher  *schemas.Publisher
}

// newDoors makes them over the enforcer that the consumers have. They answer from now
// on, and until run ends.
func (s *service) newDoors(ctx context.Context, js jetstream.JetStream, enforcer *enforcement.Enforcer) (*doors, error) {
	topology := s.config.topology()
	name := topology.Stream(schemas.StreamDecisions)
	decisions, err := js.Stream(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", name, err)
	}
	publisher, err := schemas.NewPublisher(js, schemas.PublisherOptions{})
	if err != nil {
		return nil, err
	}
	writer := schemas.NewDecisionWriter(schemas.DecisionWriterOptions{
		Store: publisher, Stored: decisions, Topology: topology, Shadow: s.config.Shadow,
	})
	return &doors{publisher: publisher, executions: api.NewExecutions(api.ExecutionsOptions{
		Enforcer: enforcer, Decisions: writer, Events: publisher, Topology: topology,
		Patience: min(s.config.UnavailableBudget, doorPatience), Log: s.log,
	})}, nil
}

// run answers until ctx ends, and then those who are inside.
func (d *doors) run(ctx context.Context) error {
	defer d.publisher.Close()
	return d.executions.Run(ctx)
}

// decide takes decisions, those of events and those that callers wait for, until ctx
// ends or a part fails, and returns when the last one is taken.
func decide(ctx context.Context, work *consumers.Consumers, doors *doors) error {
	deciding, ctx := errgroup.WithContext(ctx)
	deciding.Go(func() error { return work.Run(ctx) })
	deciding.Go(func() error { return doors.run(ctx) })
	return deciding.Wait()
}
