package main

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/headroomhq/headroom/schemas"
)

// connect reaches NATS, Redis and PostgreSQL at once, waiting for what is not
// there yet, refuses what must not be used, and brings the database up to date.
func (s *service) connect(ctx context.Context) error {
	steps, ctx := errgroup.WithContext(ctx)
	steps.Go(func() error { return s.connectNATS(ctx) })
	steps.Go(func() error { return s.connectRedis(ctx) })
	steps.Go(func() error { return s.connectPostgres(ctx) })
	return steps.Wait()
}

func (s *service) connectNATS(ctx context.Context) (err error) {
	s.natsState = newNATSState()
	if s.nats, err = connectNATS(s.config, s.log, s.natsState); err != nil {
		return err
	}
	connected := func(ask func(context.Context, *nats.Conn) error) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := s.natsState.unconnected(s.nats, s.config); err != nil {
				return err
			}
			return ask(ctx, s.nats)
		}
	}
	if err := await(ctx, s.log, &s.health.nats, bounded(connected(vetNATS))); err != nil {
		return err
	}
	s.health.nats.use(connected(checkNATS))
	return nil
}

func (s *service) connectRedis(ctx context.Context) (err error) {
	if s.redis, err = newRedis(s.config); err != nil {
		return fmt.Errorf("read HEADROOM_REDIS_URL: %w", err)
	}
	err = await(ctx, s.log, &s.health.redis, bounded(func(ctx context.Context) error {
		return explainTLS(vetRedis(ctx, s.redis, s.log), s.config.RedisURL)
	}))
	if err != nil {
		return err
	}
	s.health.redis.use(func(ctx context.Context) error { return s.redis.Ping(ctx).Err() })
	return nil
}

func (s *service) connectPostgres(ctx context.Context) (err error) {
	if s.postgres, err = newPostgres(context.WithoutCancel(ctx), s.config); err != nil {
		return err
	}
	err = await(ctx, s.log, &s.health.postgres, bounded(func(ctx context.Context) error { return vetPostgres(ctx, s.postgres, s.log) }))
	if err != nil {
		return err
	}
	err = await(ctx, s.log, &s.health.postgres, func(ctx context.Context) error { return migrate(ctx, s.config, s.log) })
	if err != nil {
		return err
	}
	s.health.postgres.use(s.postgres.Ping)
	return nil
}

// topology names the installation's streams and subjects.
func (c Config) topology() schemas.Topology {
	return schemas.Topology{Prefix: c.SubjectPrefix, Replicas: c.NATSReplicas}
}
