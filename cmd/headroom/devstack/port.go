package devstack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strconv"
)

// Ports are taken from below the ranges that Linux and macOS give to outgoing
// connections. A client that dials a server which is away would otherwise, now and
// then, be given that very port, and a restart on it would fail.
const (
	firstPort     = 20000
	portCount     = 10000
	portTries     = 100
	portRaces     = 10
	loopback      = "127.0.0.1"
	loopbackProto = "tcp4"
)

// onFreePort calls start with a port that was free, again with another
// while start reports that a process was faster.
func onFreePort(ctx context.Context, start func(port int) error) error {
	for range portRaces {
		port, err := freePort(ctx)
		if err != nil {
			return err
		}
		if err = start(port); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return fmt.Errorf("listen on %s: %d free ports in a row were taken by others", loopback, portRaces)
}

func freePort(ctx context.Context) (int, error) {
	var last error
	for range portTries {
		offset, err := rand.Int(rand.Reader, big.NewInt(portCount))
		if err != nil {
			return 0, fmt.Errorf("draw a port: %w", err)
		}
		port := firstPort + int(offset.Int64())
		listener, err := new(net.ListenConfig).Listen(ctx, loopbackProto, address(port))
		if err != nil {
			last = err
			continue
		}
		return port, listener.Close()
	}
	return 0, fmt.Errorf("find a free port on %s between %d and %d: %w", loopback, firstPort, firstPort+portCount-1, last)
}

func address(port int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}
