package schematest

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/cmd/headroom/devstack"
)

// What the tests of this process have in common; tests have no value to carry it in.
var (
	natsServers perTest[*devstack.NATS]
	natsConns   perTest[*nats.Conn]
)

// NATS is a connection to a server of the test's own, inside this process, with
// JetStream and no stream. Both end at cleanup.
func NATS(t testing.TB) *nats.Conn {
	t.Helper()
	return natsConns.of(t, func(t testing.TB) *nats.Conn {
		t.Helper()
		closed := make(chan struct{})
		conn, err := nats.Connect(NATSURL(t), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
		if err != nil {
			t.Fatalf("connect to the test's NATS server: %v", err)
		}
		t.Cleanup(func() {
			conn.Close()
			<-closed
		})
		return conn
	})
}

// NATSURL is the address of the server that NATS is connected to, with user and
// password, for a test that starts processes or opens connections itself.
func NATSURL(t testing.TB) string {
	t.Helper()
	return NATSServer(t).URL()
}

// NATSServer is the server that NATS is connected to; the test may restart it.
func NATSServer(t testing.TB) *devstack.NATS {
	t.Helper()
	return natsServers.of(t, func(t testing.TB) *devstack.NATS {
		t.Helper()
		ctx, cancel := bounded(t)
		defer cancel()
		started, err := devstack.StartNATS(ctx, devstack.NATSOptions{Log: Logger(t)})
		if err != nil {
			t.Fatalf("no NATS for the test: %v", err)
		}
		t.Cleanup(func() { stop(t, started) })
		return started
	})
}
