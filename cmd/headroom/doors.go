package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
)

// doorPatience is the longest that a caller at a door waits while a service is away:
// HTTP callers give up not much later.
const doorPatience = 5 * time.Second

// doors are where callers wait for their answers, and what they answer from.
//
//	HTTP ───────────┬─► Executions ─► Enforcer, streams
//	micro-service ──┴─► Counters, Reader ─► PostgreSQL
type doors struct {
	executions *api.Executions
	counters   *usage.Counters
	reader     *api.Reader
	micro      *api.Micro
	publisher  *schemas.Publisher
}

// newDoors makes them. The executions answer from now on, the micro-service once they run.
func (s *service) newDoors(ctx context.Context, d decider) (*doors, error) {
	// Acknowledgements of a connection's stream context are counted by one publisher.
	js, err := jetstream.New(s.nats)
	if err != nil {
		return nil, fmt.Errorf("open jetstream: %w", err)
	}
	topology := s.config.topology()
	decisions, err := js.Stream(ctx, topology.Stream(schemas.StreamDecisions))
	if err != nil {
		return nil, fmt.Errorf("open the decisions stream: %w", err)
	}
	made := &doors{counters: usage.New(usage.Options{Pool: s.postgres, Plans: d.plans, Catalog: d.store, Log: s.log})}
	made.reader = api.NewReader(api.ReaderOptions{
		Store: d.store, Ledger: d.book, Gauge: d.enforcer, Counts: made.counters, Plans: d.plans, Log: s.log,
	})
	if made.publisher, err = schemas.NewPublisher(js, schemas.PublisherOptions{}); err != nil {
		return nil, err
	}
	made.executions = api.NewExecutions(api.ExecutionsOptions{
		Enforcer: d.enforcer, Events: made.publisher, Topology: topology, Log: s.log,
		Decisions: schemas.NewDecisionWriter(schemas.DecisionWriterOptions{
			Store: made.publisher, Stored: decisions, Topology: topology, Shadow: s.config.Shadow,
		}),
		RebuildFence: s.config.RebuildFence, Patience: min(s.config.UnavailableBudget, doorPatience),
	})
	made.micro, err = api.NewMicro(api.MicroOptions{
		NATS: s.nats, Topology: topology, Executions: made.executions, Counters: made.counters, Reader: made.reader,
		Claims:  api.NewRedisClaims(s.redis, s.config.RedisPrefix),
		Version: semanticVersion(readBuild().Version), Log: s.log,
	})
	if err != nil {
		made.close()
		return nil, fmt.Errorf("make the micro-service: %w", err)
	}
	return made, nil
}

// semanticVersion is a module's version as the micro-service has to tell it.
func semanticVersion(version string) string {
	if rest, ok := strings.CutPrefix(version, "v"); ok {
		return rest
	}
	return "0.0.0-devel"
}

func (d *doors) close() { d.publisher.Close() }

// run answers until ctx ends: then the micro-service takes no more requests, and when it
// has answered those that it took, so do the executions.
func (d *doors) run(ctx context.Context, ready func() bool) error {
	working, rest := context.WithCancel(context.WithoutCancel(ctx))
	defer rest()
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return d.executions.Run(working) })
	running.Go(func() error {
		defer rest()
		if !until(ctx, ready) {
			return nil
		}
		return d.micro.Run(ctx)
	})
	return running.Wait()
}

// until waits for something to be so, which it looks at every few milliseconds. It is
// false when ctx ends before.
func until(ctx context.Context, is func() bool) bool {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !is() {
		select {
		case <-again.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// decide takes decisions, those of events and those that callers wait for, until ctx
// ends or a part fails, and returns when the last one is taken.
func decide(ctx context.Context, work *consumers.Consumers, doors *doors) error {
	deciding, ctx := errgroup.WithContext(ctx)
	deciding.Go(func() error { return work.Run(ctx) })
	deciding.Go(func() error { return doors.run(ctx, work.Ready) })
	deciding.Go(func() error { return doors.counters.Run(ctx) })
	return deciding.Wait()
}
