package client_test

import (
	"testing"
	"time"

	"github.com/headroomhq/headroom/schemas/schematest"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

func TestMain(m *testing.M) { schematest.Main(m) }
