package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// natsDrainTimeout bounds the hand-over of what is still in a connection's buffers.
	natsDrainTimeout = 5 * time.Second
	// natsDialTimeout is how long a command waits for NATS.
	natsDialTimeout = 2 * time.Second
)

// connectNATS returns a connection that keeps trying for as long as the process
// lives, also when no server answers yet or none lets us in. What becomes of it
// is logged and told to state.
func connectNATS(config Config, log *slog.Logger, state *natsState) (*nats.Conn, error) {
	options := append(natsIdentity(config),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // a password is set right on the server as often as here
		nats.ReconnectBufSize(-1),   // a decision kept back meanwhile would come out too late
		nats.ReconnectWait(500*time.Millisecond),
		nats.DrainTimeout(natsDrainTimeout),
		nats.ConnectHandler(func(nc *nats.Conn) { log.Info("nats connected", "server", nc.ConnectedServerId()) }),
		nats.ReconnectHandler(func(nc *nats.Conn) { log.Info("nats reconnected", "server", nc.ConnectedServerId()) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				state.failed(err)
				log.Warn("nats disconnected", "error", err)
			}
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { state.failed(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			log.Warn("nats reports an error", "error", err, "subject", subject)
		}),
		nats.ClosedHandler(func(*nats.Conn) { close(state.closed) }),
	)
	nc, err := nats.Connect(config.NATSURL.Reveal(), options...)
	if err != nil {
		return nil, fmt.Errorf("connect to nats at %s: %w", config.NATSURL, err)
	}
	return nc, nil
}

// dialNATS connects once, for a command that is not there for long. The
// connection is the caller's to close.
func dialNATS(config Config, timeout time.Duration) (*nats.Conn, jetstream.JetStream, error) {
	nc, err := nats.Connect(config.NATSURL.Reveal(), append(natsIdentity(config), nats.Timeout(timeout), nats.NoReconnect())...)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to nats at %s: %w", config.NATSURL, err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf("open jetstream: %w", err)
	}
	return nc, js, nil
}

func natsIdentity(config Config) []nats.Option {
	options := []nats.Option{nats.Name("headroom")}
	if config.NATSCreds != "" {
		options = append(options, nats.UserCredentials(config.NATSCreds))
	}
	if config.NATSCert != "" {
		options = append(options, nats.ClientCert(config.NATSCert, config.NATSKey))
	}
	return options
}

// natsState is what is known of a connection that keeps trying.
type natsState struct {
	// closed is closed with the connection, for good.
	closed chan struct{}

	mu    sync.Mutex
	fault error
}

func newNATSState() *natsState { return &natsState{closed: make(chan struct{})} }

// failed remembers why the connection ended or could not be made.
func (s *natsState) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = err
}

// unconnected is why nc has no server, nil when it has one.
func (s *natsState) unconnected(nc *nats.Conn, config Config) error {
	if nc.IsConnected() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// A server that answers and refuses is on the connection's record only.
	cause := cmp.Or(nc.LastError(), s.fault, errors.New("the connection is "+strings.ToLower(nc.Status().String())))
	return fmt.Errorf("connect to nats at %s: %w", config.NATSURL, cause)
}

// checkNATS is nil when the server answers on the connection. ctx has a deadline.
func checkNATS(ctx context.Context, nc *nats.Conn) error {
	if err := nc.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("ask the server: %w", err)
	}
	return nil
}
