package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

// What one search of the decisions stream may cost.
const (
	searchLimit   = 200_000
	searchTimeout = 15 * time.Second
	searchBatch   = 1_000
)

// streamedDecisions finds an execution's decisions among what the stream still
// has of its workspace, oldest first. With an error comes what was found before it.
func (a *admin) streamedDecisions(ctx context.Context, workspace, execution string) ([]schemas.DecisionMade, error) {
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	nc, js, err := dialNATS(a.config, natsDialTimeout)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	topology := a.config.topology()
	consumer, err := js.OrderedConsumer(ctx, topology.Stream(schemas.StreamDecisions), jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{topology.Decision(workspace)},
	})
	if err != nil {
		return nil, fmt.Errorf("read the decisions stream: %w", err)
	}
	pending := consumer.CachedInfo().NumPending
	search := search{consumer: consumer, execution: execution, pending: min(pending, searchLimit)}
	if err := search.run(ctx); err != nil {
		return search.found, err
	}
	if pending > searchLimit {
		return search.found, fmt.Errorf("the workspace has %d decisions on the stream, the first %d were searched", pending, searchLimit)
	}
	return search.found, nil
}

// search reads pending messages and keeps those of one execution.
type search struct {
	consumer  jetstream.Consumer
	execution string
	pending   uint64
	found     []schemas.DecisionMade
}

func (s *search) run(ctx context.Context) error {
	for s.pending > 0 {
		batch, err := s.consumer.Fetch(int(min(s.pending, searchBatch)), jetstream.FetchContext(ctx))
		if err != nil {
			return fmt.Errorf("read the decisions stream: %w", err)
		}
		got := s.pending
		for message := range batch.Messages() {
			s.pending--
			s.keep(message)
		}
		if err := batch.Error(); err != nil {
			return fmt.Errorf("read the decisions stream: %w", err)
		}
		if got == s.pending {
			return errors.New("read the decisions stream: it ended early")
		}
	}
	return nil
}

// keep takes the message if it is about the execution. One that is no decision
// belongs to nobody and is passed over.
func (s *search) keep(message jetstream.Msg) {
	event, err := schemas.Decode[schemas.DecisionMade](message.Subject(), message.Data())
	if err == nil && event.Data.ExecutionID == s.execution {
		s.found = append(s.found, event.Data)
	}
}
