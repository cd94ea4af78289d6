package schemas_test

import (
	"flag"
	"testing"

	"github.com/headroomhq/headroom/schemas/schematest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestMain(m *testing.M) { schematest.Main(m) }
