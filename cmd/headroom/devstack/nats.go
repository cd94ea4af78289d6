package devstack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const natsUser = "headroom"

// natsHandshake is how long a client may take for its part of TLS.
const natsHandshake = 5 * time.Second

// NATSOptions says how a NATS server of our own is to run. The zero value keeps its
// streams in the system's temporary directory.
type NATSOptions struct {
	// Dir is where the private directory is made; empty is the temporary directory.
	Dir string
	// Durable syncs every message to the disk before it is acknowledged.
	Durable bool
	// TLS, when set, makes the server take TLS connections only.
	TLS Certificate
	// Log hears what the server logs, at debug level; nil discards.
	Log *slog.Logger
}

// NATS is a nats-server inside this process, with JetStream, reachable on
// 127.0.0.1 with a password. Its methods may be called from several goroutines.
type NATS struct {
	options  NATSOptions
	password string
	home     *home
	port     int

	mu      sync.Mutex
	server  *server.Server
	stopped bool
}

// StartNATS starts a server and returns when it takes connections. The context
// bounds the start only, to a minute when it has no deadline.
func StartNATS(ctx context.Context, options NATSOptions) (*NATS, error) {
	options.Log = orDiscard(options.Log)
	place, err := newHome(options.Dir, "headroom-nats-", nil)
	if err != nil {
		return nil, fmt.Errorf("start NATS: %w", err)
	}
	n := &NATS{options: options, password: newPassword(), home: place}
	ctx, cancel := withPatience(ctx, startPatience)
	defer cancel()
	err = onFreePort(ctx, func(port int) error {
		n.port = port
		return n.launch(ctx)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start NATS: %w", err), place.close())
	}
	return n, nil
}

// URL is a nats:// address with user and password, tls:// with a certificate. It stays
// the same over restarts.
func (n *NATS) URL() string {
	scheme := "nats"
	if n.options.TLS.on() {
		scheme = "tls"
	}
	u := url.URL{Scheme: scheme, User: url.UserPassword(natsUser, n.password), Host: address(n.port)}
	return u.String()
}

// Server is the running server, for what only the process that holds it can do;
// another one after Restart.
func (n *NATS) Server() *server.Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server
}

// Down cuts every connection and ends the server, but keeps its directory for
// Restart. A server that is down stays down.
func (n *NATS) Down() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down()
}

// Restart ends the server if it is running and starts it again on its port and
// directory. Streams and consumers are there as before.
func (n *NATS) Restart(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		return errStopped
	}
	ctx, cancel := withPatience(ctx, startPatience)
	defer cancel()
	n.down()
	if err := relaunch(ctx, n.launch); err != nil {
		return fmt.Errorf("restart NATS: %w", err)
	}
	return nil
}

// Stop ends the server and removes its directory. A second call does nothing.
func (n *NATS) Stop(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		return nil
	}
	n.stopped = true
	n.down()
	if err := n.home.close(); err != nil {
		return fmt.Errorf("stop NATS: %w", err)
	}
	return nil
}

func (n *NATS) down() {
	n.server.Shutdown()
	n.server.WaitForShutdown()
}

// launch starts a server on the port and waits until it takes connections; on an
// error none is left.
func (n *NATS) launch(ctx context.Context) error {
	secured, err := n.options.TLS.config()
	if err != nil {
		return err
	}
	started, err := server.NewServer(&server.Options{
		ServerName:             "headroom-private",
		Host:                   loopback,
		Port:                   n.port,
		Username:               natsUser,
		Password:               n.password,
		JetStream:              true,
		StoreDir:               n.home.dir,
		SyncAlways:             n.options.Durable,
		DisableJetStreamBanner: true,
		NoSigs:                 true,
		TLS:                    secured != nil,
		TLSConfig:              secured,
		TLSVerify:              len(n.options.TLS.Clients) > 0,
		TLSTimeout:             natsHandshake.Seconds(),
	})
	if err != nil {
		return err
	}
	log := &natsLog{log: n.options.Log, fatal: make(chan string, 1)}
	started.SetLoggerV2(log, false, false, false)
	started.Start()
	n.server = started
	if err := awaitNATS(ctx, started, log.fatal); err != nil {
		n.down()
		return err
	}
	return nil
}

func awaitNATS(ctx context.Context, started *server.Server, fatal <-chan string) error {
	for !started.ReadyForConnections(10 * time.Millisecond) {
		select {
		case reason := <-fatal:
			if strings.Contains(reason, "ddress already in use") {
				return fmt.Errorf("%w: nats-server: %s", errPortTaken, reason)
			}
			return fmt.Errorf("nats-server: %s", reason)
		case <-ctx.Done():
			return fmt.Errorf("nats-server takes no connections: %w", context.Cause(ctx))
		default:
		}
	}
	return nil
}
