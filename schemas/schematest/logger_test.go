package schematest_test

import (
	"log/slog"
	"testing"

	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestALineAfterTheTestsEndIsDropped(t *testing.T) {
	t.Parallel()
	var log *slog.Logger
	t.Run("ended", func(t *testing.T) {
		log = schematest.Logger(t)
		log.Info("in time")
	})
	// The testing package would panic here.
	log.Info("late")
}
