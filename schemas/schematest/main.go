package schematest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// natsAcks is a goroutine of nats.go that starts with the first asynchronous publish.
// If the publisher is closed before it has run at all it finds no channel to wait on and
// stays: once for each publisher, which a process closes when it ends.
const natsAcks = "github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"

// Main runs a package's tests, stops the services that they started, and fails the
// package when a goroutine is left or a service did not stop. It ends the process:
//
//	func TestMain(m *testing.M) { schematest.Main(m) }
func Main(m *testing.M) {
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintf(os.Stderr, "stop the test services: %v\n", err)
		code = max(code, 1)
	}
	if code == 0 {
		if err := goleak.Find(goleak.IgnoreTopFunction(natsAcks)); err != nil {
			fmt.Fprintf(os.Stderr, "goroutines left by the tests: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}

// AtOnce lets so many of a package's parallel tests run at a time, instead of one for each
// core. It is for tests that wait for servers, deliveries and outages more than they
// compute. -parallel on the command line wins. Call it before Main.
func AtOnce(tests int) {
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic(fmt.Sprintf("set how many tests run at a time: %v", err))
	}
}

func stopShared() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(cluster.stop(ctx), redisServer.stop(ctx))
}
