// Command alltests runs "go test" and holds its result to this project's rule:
// every test runs, none is skipped, none comes from a cache, none prints a secret.
//
//	go test -json ... ──> read ──> a package's line as it ends
//	                               the output of what failed
//	                               what was skipped: a failure too
//	                               who printed a secret, and of what kind: a failure too
//	                               "N passed, N failed, N skipped"
//
// Its arguments are those of go test. The exit code is 0 only when go test's
// was, nothing was skipped and no output, of tests that pass as well, shows a secret.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "alltests: %v\n", err)
		os.Exit(1)
	}
}

// run starts go test with the arguments and reports on out.
func run(args []string, out io.Writer) error {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("open the pipe from go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start go test: %w", err)
	}
	report := newReport(out)
	readErr := report.read(pipe)
	waitErr := cmd.Wait()
	report.close()
	switch {
	case readErr != nil:
		return fmt.Errorf("read what go test prints: %w", readErr)
	case waitErr != nil:
		return fmt.Errorf("go test: %w", waitErr)
	default:
		return report.verdict()
	}
}
