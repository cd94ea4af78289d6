package schematest_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/headroomhq/headroom/schemas/schematest"
)

// leak makes a test of this binary leave a goroutine behind, for another to see.
const leak = "SCHEMATEST_LEAK"

func TestMain(m *testing.M) { schematest.Main(m) }

func TestLeaving(t *testing.T) {
	t.Parallel()
	if os.Getenv(leak) == "" {
		return
	}
	go func() { select {} }()
}

func TestAGoroutineLeftBehindFailsThePackage(t *testing.T) {
	t.Parallel()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{"": "PASS", "yes": "goroutines left by the tests"} {
		cmd := exec.Command(executable, "-test.run=^TestLeaving$")
		cmd.Env = append(os.Environ(), leak+"="+value)
		output, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if failed := errors.As(err, &exit); failed != (value != "") || !strings.Contains(string(output), want) {
			t.Errorf("with %s=%q: %v; want the output to contain %q:\n%s", leak, value, err, want, output)
		}
	}
}
