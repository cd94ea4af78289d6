package main

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/headroomhq/headroom/schemas/schematest"
)

// TestMain runs the tests, or is the program, for a test that needs a process.
func TestMain(m *testing.M) {
	if os.Getenv(beHeadroom) != "" {
		main()
	}
	schematest.AtOnce(4)
	schematest.Main(m)
}

func TestTheExitCodeTellsWrongUsageFromFailure(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want int
	}{
		"done":                    {nil, 0},
		"failed":                  {errors.New("it broke"), 1},
		"wrong usage":             {&usageError{Err: errors.New("no such flag")}, 2},
		"wrong usage, wrapped":    {fmt.Errorf("serve: %w", &usageError{Err: errors.New("no such flag")}), 2},
		"usage joined with other": {errors.Join(errors.New("it broke"), &usageError{Err: errors.New("x")}), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := exitCode(test.err); got != test.want {
				t.Errorf("exit code is %d, want %d", got, test.want)
			}
		})
	}
}
