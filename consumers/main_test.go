package consumers_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/headroomhq/headroom/schemas/schematest"
)

// TestMain runs the tests, or is the process that a test started to be killed.
func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) != "" {
		os.Exit(untilKilled(consume, os.Stdin, os.Stderr))
	}
	if os.Getenv(relayVariable) != "" {
		os.Exit(untilKilled(relayProcess, os.Stdin, os.Stderr))
	}
	// Most of a test here is waiting for servers, deliveries and outages. `-parallel`
	// on the command line comes later and wins.
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	schematest.Main(m)
}
