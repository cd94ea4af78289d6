package main

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// decider is what decides and what it decides by, shared by the consumers and the doors.
type decider struct {
	store    *subscriptions.Store
	plans    *client.Plans
	book     *ledger.Store
	enforcer *enforcement.Enforcer
}

// openAPI assembles what the HTTP API answers from, and opens its door. The executions
// are to be run: until then they answer, and from the end of that no more.
//
//	HTTP ─► Executions ─► Enforcer, decisions stream
//	     ─► Counters, Reader ─► PostgreSQL
//	     ─► Claims ─► Redis
func (s *service) openAPI(ctx context.Context, d decider) (executions *api.Executions, closeAll func(), err error) {
	// Acknowledgements of a connection's stream context are counted by one publisher.
	js, err := jetstream.New(s.nats)
	if err != nil {
		return nil, nil, fmt.Errorf("open jetstream: %w", err)
	}
	decisions, err := js.Stream(ctx, s.config.topology().Stream(schemas.StreamDecisions))
	if err != nil {
		return nil, nil, fmt.Errorf("open the decisions stream: %w", err)
	}
	publisher, err := schemas.NewPublisher(js, schemas.PublisherOptions{})
	if err != nil {
		return nil, nil, err
	}
	executions = api.NewExecutions(api.ExecutionsOptions{
		Enforcer: d.enforcer, Events: publisher, Topology: s.config.topology(), Log: s.log,
		Decisions: schemas.NewDecisionWriter(schemas.DecisionWriterOptions{
			Store: publisher, Stored: decisions, Topology: s.config.topology(), Shadow: s.config.Shadow,
		}),
	})
	counters := usage.New(usage.Options{Pool: s.postgres, Plans: d.plans, Catalog: d.store, Log: s.log})
	tokens, err := s.config.tokens()
	if err != nil {
		publisher.Close()
		return nil, nil, err
	}
	handler, err := api.NewHTTP(api.Options{
		Executions: executions,
		Reader:     api.NewReader(api.ReaderOptions{Store: d.store, Ledger: d.book, Gauge: d.enforcer, Counts: counters, Plans: d.plans, Log: s.log}),
		Counters:   counters, Invalidator: d.store,
		Claims: api.NewRedisClaims(s.redis, s.config.RedisPrefix),
		Tokens: tokens, Log: s.log,
	})
	if err != nil {
		publisher.Close()
		return nil, nil, fmt.Errorf("make the API: %w", err)
	}
	s.api.open(handler)
	return executions, publisher.Close, nil
}
