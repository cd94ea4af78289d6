package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/subscriptions"
)

// consume assembles what decides, over the connections, and runs it until ctx
// ends or a part fails.
//
//	Plans ◄── news, catalog                   kept current
//	  └─► Enforcer ◄── ledger                 the decisions
//	          ├─► Consumers                   events in, decisions out
//	          └─► Doors ◄── HTTP, NATS        callers who wait for the answer
//	Outbox ─► Relay                           news of plans and periods out
//	Ledger ─► Watchdog                        what runs too long, what leaked
//	Lifecycle                                 what time does to subscriptions
//	Counters                                  answers under old keys forgotten
//	Door ─► Worker ◄── Sweep, Sync            what Stripe does to them
func (s *service) consume(ctx context.Context) error {
	js, err := jetstream.New(s.nats)
	if err != nil {
		return fmt.Errorf("open jetstream: %w", err)
	}
	err = await(ctx, s.log, &s.health.consumers, bounded(func(ctx context.Context) error {
		return ensureStreams(ctx, js, s.config, s.log)
	}))
	if err != nil {
		return err
	}
	options := s.config.storeOptions()
	options.Log = s.log
	store := subscriptions.NewStore(s.postgres, options)
	plans, err := s.plans(js, store)
	if err != nil {
		return err
	}
	d := s.decider(js, store, plans)
	work, err := s.consumers(js, d)
	if err != nil {
		return err
	}
	doors, err := s.newDoors(ctx, d)
	if err != nil {
		return err
	}
	defer doors.close()
	if err := s.openAPI(d, doors); err != nil {
		return err
	}
	outbox := subscriptions.NewOutbox(s.postgres)
	relay, err := s.relay(js, outbox)
	if err != nil {
		return err
	}
	watchdog, err := s.watchdog(js, d)
	if err != nil {
		return err
	}
	s.metrics.watch(parts{
		plans: plans, work: work, doors: doors.executions, relay: relay, outbox: outbox, watchdog: watchdog, book: d.book,
	})
	s.metrics.watchDeadLetters(js, s.config.topology())
	s.health.consumers.use(func(context.Context) error {
		if !work.Ready() {
			return errors.New("not all of them are consuming")
		}
		if !doors.micro.Ready() {
			return errors.New("the micro-service does not answer yet")
		}
		return nil
	})
	return s.runParts(ctx, js, assembled{store: store, plans: plans, work: work, doors: doors, relay: relay, watchdog: watchdog})
}

// assembled are the parts that run for as long as the process does.
type assembled struct {
	store *subscriptions.Store
	plans *client.Plans
	work  *consumers.Consumers
	doors *doors
	relay *consumers.Relay

	watchdog *consumers.Watchdog
}

// runParts runs them until ctx ends or one fails.
func (s *service) runParts(ctx context.Context, js jetstream.JetStream, a assembled) error {
	// The cache stays current until the last decision is taken.
	current, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error {
		defer cancel()
		return decide(ctx, a.work, a.doors)
	})
	running.Go(func() error { return a.relay.Run(ctx) })
	running.Go(func() error { return a.watchdog.Run(ctx) })
	running.Go(func() error {
		return subscriptions.NewLifecycle(a.store, subscriptions.LifecycleOptions{Log: s.log}).Run(ctx)
	})
	running.Go(func() error { return a.plans.Run(current) })
	running.Go(func() error {
		keepStreams(ctx, js, s.config, s.log)
		return nil
	})
	running.Go(func() error { return s.followStripe(ctx) })
	return running.Wait()
}

func (s *service) plans(js jetstream.JetStream, store *subscriptions.Store) (*client.Plans, error) {
	return client.NewPlans(client.PlansOptions{
		Source:    newPlanSource(store, &s.health.catalog),
		JetStream: js, Topology: s.config.topology(), TTL: s.config.PlanCacheTTL, Applied: s.metrics.applied, Log: s.log,
	})
}

func (s *service) relay(js jetstream.JetStream, outbox *subscriptions.Outbox) (*consumers.Relay, error) {
	return consumers.NewRelay(consumers.RelayOptions{
		NATS: s.nats, JetStream: js, Topology: s.config.topology(), Outbox: outbox, Broadcast: s.broadcast(), Log: s.log,
	})
}

func (s *service) watchdog(js jetstream.JetStream, d decider) (*consumers.Watchdog, error) {
	return consumers.NewWatchdog(consumers.WatchdogOptions{
		NATS: s.nats, JetStream: js, Topology: s.config.topology(), Ledger: d.book, Leases: d.enforcer,
		Shadow: s.config.Shadow, Log: s.log,
	})
}

// broadcast publishes on the Redis channel, if there is one.
func (s *service) broadcast() func(ctx context.Context, body []byte) error {
	channel := s.config.RedisInvalidationChannel
	if channel == "" {
		return nil
	}
	return func(ctx context.Context, body []byte) error { return s.redis.Publish(ctx, channel, body).Err() }
}

func (s *service) decider(js jetstream.JetStream, store *subscriptions.Store, plans *client.Plans) decider {
	book := ledger.New(s.postgres)
	return decider{store: store, plans: plans, book: book, enforcer: enforcement.New(enforcement.Options{
		Redis: s.redis, Plans: plans, Usage: book, Prefix: s.config.RedisPrefix,
		LeaseGrace: s.config.LeaseGrace, LeaseDefault: s.config.LeaseDefault,
		RebuildFence: s.config.RebuildFence, Watermark: consumers.NewWatermark(js, s.config.topology(), book),
	})}
}

func (s *service) consumers(js jetstream.JetStream, d decider) (*consumers.Consumers, error) {
	return consumers.New(consumers.Options{
		NATS: s.nats, JetStream: js, Topology: s.config.topology(), Enforcer: d.enforcer, Ledger: d.book,
		Renewals: d.store, Plans: d.plans,
		Workers: s.config.Workers, BatchSize: s.config.BatchSize, UnavailableBudget: s.config.UnavailableBudget, RebuildFence: s.config.RebuildFence,
		Shadow: s.config.Shadow, Log: s.log,
	})
}
