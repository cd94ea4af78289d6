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
//	planCache ◄── watch, Invalidations        the plans, kept current
//	    └─► Enforcer ◄── ledger               the decisions
//	            └─► Consumers                 events in, decisions out
//	Outbox ─► Relay                           news of plans and periods out
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
	plans := newPlanCache(store, s.config.PlanCacheTTL, &s.health.catalog, s.log)
	news, err := client.OpenInvalidations(ctx, client.InvalidationsOptions{
		JetStream: js, Topology: s.config.topology(), Plans: plans, Log: s.log,
	})
	if err != nil {
		return err
	}
	work, err := s.consumers(js, store, plans)
	if err != nil {
		return err
	}
	relay, err := consumers.NewRelay(consumers.RelayOptions{
		NATS: s.nats, JetStream: js, Topology: s.config.topology(), Outbox: subscriptions.NewOutbox(s.postgres), Log: s.log,
	})
	if err != nil {
		return err
	}
	s.health.consumers.use(func(context.Context) error {
		if !work.Ready() {
			return errors.New("not all of them are consuming")
		}
		return nil
	})
	// The cache stays current until the last decision is taken.
	current, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error {
		defer cancel()
		return work.Run(ctx)
	})
	parts.Go(func() error { return relay.Run(ctx) })
	parts.Go(func() error { return news.Run(current) })
	parts.Go(func() error { return plans.watch(current) })
	return parts.Wait()
}

func (s *service) consumers(js jetstream.JetStream, store *subscriptions.Store, plans *planCache) (*consumers.Consumers, error) {
	book := ledger.New(s.postgres)
	enforcer := enforcement.New(enforcement.Options{
		Redis: s.redis, Plans: plans, Usage: book, Prefix: s.config.RedisPrefix,
		LeaseGrace: s.config.LeaseGrace, LeaseDefault: s.config.LeaseDefault,
	})
	return consumers.New(consumers.Options{
		NATS: s.nats, JetStream: js, Topology: s.config.topology(), Enforcer: enforcer, Ledger: book,
		Renewals: store, Plans: plans,
		Workers: s.config.Workers, BatchSize: s.config.BatchSize, UnavailableBudget: s.config.UnavailableBudget,
		Shadow: s.config.Shadow, Log: s.log,
	})
}
