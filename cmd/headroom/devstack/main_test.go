package devstack_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// parentMode makes the test binary the process whose end a test watches.
const parentMode = "DEVSTACK_TEST_PARENT"

func TestMain(m *testing.M) {
	if mode := os.Getenv(parentMode); mode != "" {
		if err := parent(mode, os.Getenv(parentDir), os.Stdout); err != nil {
			fmt.Fprintln(os.Stdout, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
