package consumers_test

import (
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
	if os.Getenv(watchdogVariable) != "" {
		os.Exit(untilKilled(watchdogProcess, os.Stdin, os.Stderr))
	}
	schematest.AtOnce(4)
	schematest.Main(m)
}
