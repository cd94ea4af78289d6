package devstack

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sync/errgroup"
)

// Options says which services to start and how.
type Options struct {
	// Dir is where the private directories are made; empty is the temporary directory.
	Dir string
	// Postgres, Redis and NATS choose the services; what is not chosen has an empty URL.
	Postgres, Redis, NATS bool
	// Durable makes each service keep what it acknowledged when it is killed and
	// restarted, as in production. It does not keep data beyond Stop.
	Durable bool
	// RedisFallback serves from inside this process when the machine has no
	// redis-server, with a warning in the log. Not for tests.
	RedisFallback bool
	// Log hears of the services' life at debug level, and of the fallback; nil discards.
	Log *slog.Logger
}

// redisService is what a Stack needs of Redis: a *Redis, or the stand-in for one.
type redisService interface {
	URL() string
	Stop(ctx context.Context) error
}

// Stack is a set of running services. Its methods may be called from several goroutines.
type Stack struct {
	log      *slog.Logger
	postgres *Postgres
	redis    redisService
	nats     *NATS

	stop    sync.Once
	stopErr error
}

// Start starts the chosen services side by side and returns when each answers. The
// context bounds the start only. On an error everything is stopped again; the
// error shows a failed service's last lines, or is a *MissingError that names
// the package to install.
func Start(ctx context.Context, options Options) (*Stack, error) {
	options.Log = orDiscard(options.Log)
	s := &Stack{log: options.Log}
	starts, startCtx := errgroup.WithContext(ctx)
	if options.Postgres {
		starts.Go(func() (err error) {
			s.postgres, err = StartPostgres(startCtx, PostgresOptions{
				Dir: options.Dir, Durable: options.Durable, Log: options.Log,
			})
			return err
		})
	}
	if options.Redis {
		starts.Go(func() (err error) {
			s.redis, err = startAnyRedis(startCtx, options)
			return err
		})
	}
	if options.NATS {
		starts.Go(func() (err error) {
			s.nats, err = StartNATS(startCtx, NATSOptions{Dir: options.Dir, Durable: options.Durable, Log: options.Log})
			return err
		})
	}
	if err := starts.Wait(); err != nil {
		return nil, errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func startAnyRedis(ctx context.Context, options Options) (redisService, error) {
	started, err := StartRedis(ctx, RedisOptions{Dir: options.Dir, Durable: options.Durable, Log: options.Log})
	if err != nil {
		return fallBack(options, err)
	}
	return started, nil
}

// fallBack is the stand-in, when it is allowed and the cause is a missing redis-server;
// else the cause.
func fallBack(options Options, cause error) (redisService, error) {
	var missing *MissingError
	if !options.RedisFallback || !errors.As(cause, &missing) {
		return nil, cause
	}
	options.Log.Warn("no redis-server on this machine: a stand-in inside this process serves, without persistence and not for load",
		"advice", missing.Error())
	stand, err := StartStandIn()
	if err != nil {
		return nil, err
	}
	return stand, nil
}

// PostgresURL is the address of an empty database, with the password; empty when not started.
func (s *Stack) PostgresURL() string {
	if s.postgres == nil {
		return ""
	}
	return s.postgres.URL()
}

// RedisURL is the address of database 0, with the password; empty when not started.
func (s *Stack) RedisURL() string {
	if s.redis == nil {
		return ""
	}
	return s.redis.URL()
}

// NATSURL is the server's address with user and password; empty when not started.
func (s *Stack) NATSURL() string {
	if s.nats == nil {
		return ""
	}
	return s.nats.URL()
}

// NATSServer is the server inside this process; nil when not started.
func (s *Stack) NATSServer() *server.Server {
	if s.nats == nil {
		return nil
	}
	return s.nats.Server()
}

// Stop ends the services in an orderly way and removes their directories. At the
// context's deadline, or after ten seconds each, a service is killed, which is an error.
// Every call returns the result of the first.
func (s *Stack) Stop(ctx context.Context) error {
	s.stop.Do(func() { s.stopErr = s.stopAll(ctx) })
	return s.stopErr
}

func (s *Stack) stopAll(ctx context.Context) error {
	var fromNATS, fromRedis, fromPostgres error
	var stops sync.WaitGroup
	if s.nats != nil {
		stops.Go(func() { fromNATS = s.nats.Stop(ctx) })
	}
	if s.redis != nil {
		stops.Go(func() { fromRedis = s.redis.Stop(ctx) })
	}
	if s.postgres != nil {
		stops.Go(func() { fromPostgres = s.postgres.Stop(ctx) })
	}
	stops.Wait()
	return errors.Join(fromNATS, fromRedis, fromPostgres)
}

func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
