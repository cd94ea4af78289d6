package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
)

// service holds what serve has opened, so that it can be closed in order. What
// was not reached yet is nil.
type service struct {
	config  Config
	log     *slog.Logger
	health  *health
	metrics *metrics
	http    *httpServer
	door    *stripeDoor
	api     *apiDoor

	nats      *nats.Conn
	natsState *natsState
	redis     redis.UniversalClient
	postgres  *pgxpool.Pool
}

// run works until ctx ends or a part fails, and then drains: all of it within
// one deadline.
func (s *service) run(ctx context.Context) error {
	finished := make(chan error, 1)
	go func() { finished <- s.work(ctx) }()
	var err error
	over := false
	select {
	case err = <-finished:
		over = true
	case <-ctx.Done():
	}
	s.health.draining.Store(true)
	s.log.Info("draining", "within", drainDeadline.String())
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainDeadline)
	defer cancel()
	if !over {
		select {
		case err = <-finished:
		case <-ending.Done():
			// The consumers still use the connections, so these stay as they are: the process ends, and what was not
			// settled is delivered again.
			return errors.Join(errors.New("drain: the consumers did not finish in time"), s.http.shutdown(ending))
		}
	}
	return errors.Join(err, s.close(ending))
}

// work connects everything and runs the consumers. An end that was asked for is
// no error.
func (s *service) work(ctx context.Context) error {
	if err := s.connect(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // nothing was begun, whatever the step made of the end
		}
		return err
	}
	err := s.consume(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// close gives back what was opened, in the order in which the parts need each
// other, and goes on whatever fails.
func (s *service) close(ctx context.Context) error {
	faults := []error{s.http.shutdown(ctx)}
	if s.nats != nil {
		faults = append(faults, s.drainNATS(ctx))
	}
	if s.redis != nil {
		faults = append(faults, s.redis.Close())
	}
	if s.postgres != nil {
		s.postgres.Close()
	}
	return errors.Join(faults...)
}

// drainNATS hands over what is still buffered. A connection that is down has
// nobody to hand it to.
func (s *service) drainNATS(ctx context.Context) error {
	if !s.nats.IsConnected() {
		s.nats.Close()
		return nil
	}
	if err := s.nats.Drain(); err != nil {
		s.nats.Close()
		return err
	}
	select {
	case <-s.natsState.closed:
	case <-ctx.Done():
		s.nats.Close()
	}
	return nil
}
