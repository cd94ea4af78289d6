package devstack

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

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
	// TLS, when set, makes the server take TLS connections only. Not for a Cluster, and
	// without Clients.
	TLS Certificate
	// Log hears of the server's life, at debug level; nil discards.
	Log *slog.Logger
}

// Redis is a redis-server of our own, reachable on 127.0.0.1 with a password.
// Its methods may be called from several goroutines.
type Redis struct {
	daemon
	options    RedisOptions
	executable string
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
	if err := r.launchOnFreePort(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start Redis: %w", err), r.home.close())
	}
	return r, nil
}

func newRedis(options RedisOptions) (*Redis, error) {
	if options.Databases == 0 {
		options.Databases = 16
	}
	executable, err := redisProgram()
	if err != nil {
		return nil, err
	}
	r := &Redis{
		daemon:  daemon{service: "Redis", log: orDiscard(options.Log)},
		options: options, executable: executable,
	}
	r.program = r
	if err := r.moveIn(options.Dir, "redis"); err != nil {
		return nil, err
	}
	return r, nil
}

// URL is a redis:// address of database 0 with the password, rediss:// with a
// certificate. It stays the same over restarts.
func (r *Redis) URL() string {
	plain := redisURL(address(r.port), r.password)
	if r.options.TLS.on() {
		return strings.Replace(plain, "redis://", "rediss://", 1)
	}
	return plain
}

// launch starts the server on the port and waits until it answers; on an error
// no server is left.
func (r *Redis) launch(ctx context.Context) error {
	if err := r.home.write("redis.conf", r.config()); err != nil {
		return err
	}
	if err := r.options.TLS.move(r.home); err != nil {
		return err
	}
	ready := r.ping
	if r.options.Cluster {
		ready = r.pingCluster
	}
	err := r.run(ctx, command{
		name: "redis-server", program: r.executable, args: []string{r.home.path("redis.conf")}, stop: syscall.SIGTERM,
	}, ready)
	if err != nil {
		return err
	}
	r.log.Debug("redis started", "port", r.port, "pid", r.server.cmd.Process.Pid, "dir", r.home.dir)
	return nil
}

func (r *Redis) logStop() { r.log.Debug("redis stopped", "port", r.port) }

// ping dials first by itself: go-redis logs a refused connection, which a start is full of.
func (r *Redis) ping(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, loopbackProto, address(r.port))
	if err != nil {
		return err
	}
	options := &redis.Options{
		Addr: address(r.port), Password: r.password, MaxRetries: -1, DialerRetries: 1,
		DisableIdentity: true, ContextTimeoutEnabled: true,
	}
	if r.options.TLS.on() {
		options.TLSConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // an expired certificate is a server too
	}
	client := redis.NewClient(options)
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
	listen := fmt.Sprintf("port %d", r.port)
	if r.options.TLS.on() {
		listen = fmt.Sprintf("port 0\ntls-port %d\ntls-cert-file %s\ntls-key-file %s\ntls-auth-clients no",
			r.port, certificateFile, keyFile)
	}
	return strings.Join([]string{
		"cluster-enabled " + cluster,
		"bind " + loopback,
		listen,
		"protected-mode yes",
		"requirepass " + r.password,
		"dir ./",
		fmt.Sprintf("databases %d", databases),
		"save \"\"",
		"appendonly " + appendOnly,
		// With everysec a server whose disk is busy puts writes off, and a kill loses
		// up to two seconds of them. What is written at once survives a kill; only
		// a machine that fails loses what its disk has not got.
		"appendfsync no",
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
