package webhooks_test

import (
	"os"
	"testing"

	"github.com/headroomhq/headroom/schemas/schematest"
)

// TestMain runs the tests, or is the process that a test started to be killed.
func TestMain(m *testing.M) {
	if os.Getenv(stepVariable) != "" {
		os.Exit(untilKilled(os.Getenv))
	}
	schematest.Main(m)
}
