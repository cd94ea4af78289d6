package api_test

import (
	"testing"

	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestMain(m *testing.M) { schematest.Main(m) }
