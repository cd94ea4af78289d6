package devstack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// startPatience bounds a start when the caller sets no deadline.
const startPatience = time.Minute

// RedisOptions says how a Redis server of our own is to run. The zero value is a
// server in the system's temporary directory that forgets everything when it ends.
type RedisOptions struct {
	// Dir is where the private directory is made; empty is the temporary directory.
	Dir string
	// Durable keeps an append-only file, so that what was answered survives Kill and Restart.
	Durable bool
	// Databases is how many numbered databases there are; 0 is 16.
	Databases int
	// Cluster makes it a Redis Cluster of one master that holds every slot: keys of
	// one command that lie in different slots are refused, as on a larger one.
	// Such a server has one database.
	Cluster bool
	// Log hears of the server's life, at debug level; nil discards.
	Log *slog.Logger
}

// Redis is a redis-server of our own, reachable on 127.0.0.1 with a password.
// Its methods may be called from several goroutines.
type Redis struct {
	options  RedisOptions
	program  string
	password string
	home     *home

	mu      sync.Mutex
	port    int
	server  *child
	stopped bool
}

// StartRedis starts a server and returns when it answers. The context bounds the
// start only, to a minute when it has no deadline. Without a redis-server
// on the machine the error is a *MissingError; on any error nothing is left running.
func StartRedis(ctx context.Context, options RedisOptions) (*Redis, error) {
	r, err := newRedis(options)
	if err != nil {
		return nil, fmt.Errorf("start Redis: %w", err)
	}
	ctx, cancel := withPatience(ctx, startPatience)
	defer cancel()
	err = onFreePort(ctx, func(port int) error {
		r.port = port
		return r.launch(ctx)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start Redis: %w", err), r.home.close())
	}
	return r, nil
}

func newRedis(options RedisOptions) (*Redis, error) {
	options.Log = orDiscard(options.Log)
	if options.Databases == 0 {
		options.Databases = 16
	}
	program, err := redisProgram()
	if err != nil {
		return nil, err
	}
	own, err := unprivileged("redis", "nobody")
	if err != nil {
		return nil, err
	}
	place, err := newHome(options.Dir, "headroom-redis-", own)
	if err != nil {
		return nil, err
	}
	return &Redis{options: options, program: program, password: rand.Text(), home: place}, nil
}

// URL is a redis:// address of database 0 with the password. It stays the same
// over restarts.
func (r *Redis) URL() string { return redisURL(address(r.port), r.password) }

// PID is the process id of the server, for signals such as SIGSTOP; the last one
// when it is not running.
func (r *Redis) PID() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.server.cmd.Process.Pid
}

// Kill ends the server as a crash would: SIGKILL. It returns when the process is gone.
func (r *Redis) Kill() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.server.kill()
}

// Restart starts the server again on its port and directory, after an orderly stop
// when it is running, and returns when it answers. Without Durable it comes back empty.
func (r *Redis) Restart(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return errStopped
	}
	ctx, cancel := withPatience(ctx, startPatience)
	defer cancel()
	if err := r.server.shutdown(ctx); err != nil {
		return fmt.Errorf("restart Redis: %w", err)
	}
	if err := relaunch(ctx, r.launch); err != nil {
		return fmt.Errorf("restart Redis: %w", err)
	}
	return nil
}

// Stop ends the server in an orderly way and removes its directory. At the
// context's deadline, or after ten seconds, the server is killed, which is an
// error. A second call does nothing.
func (r *Redis) Stop(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return nil
	}
	r.stopped = true
	if err := errors.Join(r.server.shutdown(ctx), r.home.close()); err != nil {
		return fmt.Errorf("stop Redis: %w", err)
	}
	r.options.Log.Debug("redis stopped", "port", r.port)
	return nil
}

// launch starts the server on the port and waits until it answers; on an error
// no server is left.
func (r *Redis) launch(ctx context.Context) error {
	if err := r.home.write("redis.conf", r.config()); err != nil {
		return err
	}
	server, err := r.home.start(command{
		name: "redis-server", program: r.program, args: []string{r.home.path("redis.conf")}, stop: syscall.SIGTERM,
	})
	if err != nil {
		return err
	}
	r.server = server
	ready := r.ping
	if r.options.Cluster {
		ready = r.pingCluster
	}
	if err := server.awaitReady(ctx, ready); err != nil {
		return errors.Join(err, server.kill())
	}
	r.options.Log.Debug("redis started", "port", r.port, "pid", server.cmd.Process.Pid, "dir", r.home.dir)
	return nil
}

// ping dials first by itself: go-redis logs a refused connection, which a start is full of.
func (r *Redis) ping(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, loopbackProto, address(r.port))
	if err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{
		Addr: address(r.port), Password: r.password, MaxRetries: -1, DialerRetries: 1,
		DisableIdentity: true, ContextTimeoutEnabled: true,
	})
	return errors.Join(client.Ping(ctx).Err(), client.Close(), conn.Close())
}

// config is a file and not arguments, because others can read those.
func (r *Redis) config() string {
	appendOnly, hz := "no", 100
	if r.options.Durable {
		appendOnly, hz = "yes", 10
	}
	cluster, databases := "no", r.options.Databases
	if r.options.Cluster {
		cluster, databases = "yes", 1
	}
	return strings.Join([]string{
		"cluster-enabled " + cluster,
		"bind " + loopback,
		fmt.Sprintf("port %d", r.port),
		"protected-mode yes",
		"requirepass " + r.password,
		"dir ./",
		fmt.Sprintf("databases %d", databases),
		"save \"\"",
		"appendonly " + appendOnly,
		// Expired keys of many databases are looked for 16 databases a tick.
		fmt.Sprintf("hz %d", hz),
		"maxmemory-policy noeviction",
		"daemonize no",
		"",
	}, "\n")
}

func redisURL(host, password string) string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", password), Host: host, Path: "/0"}
	return u.String()
}
