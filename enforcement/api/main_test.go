package api_test

import (
	"os"
	"testing"

	"github.com/headroomhq/headroom/schemas/schematest"
)

// TestMain runs the tests, or is one of the processes that a test started.
func TestMain(m *testing.M) {
	if job := os.Getenv(jobVariable); job != "" {
		os.Exit(worker(job, os.Stdout))
	}
	schematest.AtOnce(4)
	schematest.Main(m)
}
