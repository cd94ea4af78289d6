package subscriptions_test

import (
	"os"
	"testing"

	"github.com/headroomhq/headroom/schemas/schematest"
)

// TestMain runs the tests, or is the process that a test started to be killed.
func TestMain(m *testing.M) {
	if address := os.Getenv(lifecycleVariable); address != "" {
		os.Exit(lifecycleProcess(address, os.Stdin, os.Stderr))
	}
	schematest.Main(m)
}
