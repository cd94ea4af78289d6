package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// natsDrainTimeout bounds the hand-over of what is still in a connection's buffers.
	natsDrainTimeout = 5 * time.Second
	// natsDialTimeout is how long a command waits for NATS.
	natsDialTimeout = 2 * time.Second
)

// connectNATS returns a connection that keeps trying for as long as the process
// lives, also when no server answers yet. What becomes of it is logged; closed
// gets a value when it is closed for good.
func connectNATS(config Config, log *slog.Logger, closed chan<- struct{}) (*nats.Conn, error) {
	options := append(natsIdentity(config),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1), // a decision kept back meanwhile would come out too late
		nats.ReconnectWait(500*time.Millisecond),
		nats.DrainTimeout(natsDrainTimeout),
		nats.ConnectHandler(func(nc *nats.Conn) { log.Info("nats connected", "server", nc.ConnectedServerId()) }),
		nats.ReconnectHandler(func(nc *nats.Conn) { log.Info("nats reconnected", "server", nc.ConnectedServerId()) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("nats disconnected", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			log.Warn("nats reports an error", "error", err, "subject", subject)
		}),
		nats.ClosedHandler(func(*nats.Conn) { closed <- struct{}{} }),
	)
	nc, err := nats.Connect(config.NATSURL.Reveal(), options...)
	if err != nil {
		return nil, fmt.Errorf("connect to nats at %s: %w", config.NATSURL, err)
	}
	return nc, nil
}

// dialNATS connects once, for a command that is not there for long.
func dialNATS(config Config, timeout time.Duration) (*nats.Conn, error) {
	nc, err := nats.Connect(config.NATSURL.Reveal(), append(natsIdentity(config), nats.Timeout(timeout), nats.NoReconnect())...)
	if err != nil {
		return nil, fmt.Errorf("connect to nats at %s: %w", config.NATSURL, err)
	}
	return nc, nil
}

func natsIdentity(config Config) []nats.Option {
	options := []nats.Option{nats.Name("headroom")}
	if config.NATSCreds != "" {
		options = append(options, nats.UserCredentials(config.NATSCreds))
	}
	return options
}

// checkNATS is nil when the server answers on the connection.
func checkNATS(ctx context.Context, nc *nats.Conn) error {
	if !nc.IsConnected() {
		return errors.New("no server is connected, the connection is " + strings.ToLower(nc.Status().String()))
	}
	if err := nc.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("ask the server: %w", err)
	}
	return nil
}
