package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is one line of go test -json; see "go doc test2json".
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// name is the test, or the package where there is none.
func (e event) name() string {
	if e.Test == "" {
		return e.Package
	}
	return e.Package + " " + e.Test
}

// report follows a run. It keeps the output of what has not ended yet, and
// forgets it when that has passed.
type report struct {
	out            io.Writer
	open           map[string]*strings.Builder
	skipped        []string
	secrets        []secret
	leaks          map[string]bool // who printed what kind of secret
	passed, failed int
	failedPackages int
}

func newReport(out io.Writer) *report {
	return &report{out: out, open: map[string]*strings.Builder{}, secrets: secrets(), leaks: map[string]bool{}}
}

// read takes the events up to the end of r. A line that is no event is shown as it is.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(r.out, lines.Text())
			continue
		}
		r.take(e)
	}
	return lines.Err()
}

// take moves the report on by one event.
func (r *report) take(e event) {
	if kind := r.shown(e.Output); kind != "" {
		r.leaks[e.name()+" prints "+kind] = true
	}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.keep(e)
	case "pass":
		r.count(e, &r.passed)
		r.drop(e)
	case "fail":
		r.count(e, &r.failed)
		if e.Test == "" {
			r.failedPackages++
		}
		r.show(e)
	case "skip":
		if e.Test != "" {
			r.skipped = append(r.skipped, e.name())
		}
		r.show(e)
	}
}

// keep holds a line of output back until its test has ended. A package's result
// line is shown at once: it says how far the run is.
func (r *report) keep(e event) {
	if e.Test == "" && isResult(e.Output) {
		fmt.Fprint(r.out, e.Output)
		return
	}
	held := r.open[e.name()]
	if held == nil {
		held = &strings.Builder{}
		r.open[e.name()] = held
	}
	if strings.HasPrefix(e.Output, "=== ") {
		return // RUN, PAUSE, CONT: the order of tests, no news of them
	}
	held.WriteString(e.Output)
}

// isResult reports whether a package's output is the line go test ends it with.
func isResult(line string) bool {
	return strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "FAIL\t") || strings.HasPrefix(line, "---\t")
}

func (r *report) count(e event, n *int) {
	if e.Test != "" {
		*n++
	}
}

// show prints what was held back for a test or package.
func (r *report) show(e event) {
	if held := r.open[e.name()]; held != nil && (e.Test != "" || e.Action == "fail") {
		fmt.Fprint(r.out, held.String())
	}
	r.drop(e)
}

func (r *report) drop(e event) { delete(r.open, e.name()) }

// close prints what never ended, which is where a crash or a timeout was, then
// what was skipped, then the count on a line of its own.
func (r *report) close() {
	for _, name := range slices.Sorted(maps.Keys(r.open)) {
		fmt.Fprintf(r.out, "never ended: %s\n%s", name, r.open[name])
	}
	for _, name := range r.skipped {
		fmt.Fprintf(r.out, "skipped: %s\n", name)
	}
	for _, leak := range slices.Sorted(maps.Keys(r.leaks)) {
		fmt.Fprintln(r.out, leak)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, len(r.skipped))
}

// verdict is what go test's exit code does not say.
func (r *report) verdict() error {
	switch {
	case len(r.skipped) > 0:
		return fmt.Errorf("%d tests were skipped; a test that cannot run here is a failure", len(r.skipped))
	case len(r.leaks) > 0:
		return fmt.Errorf("a secret was printed, by %d tests or packages", len(r.leaks))
	case r.passed == 0:
		return errors.New("no test ran")
	case r.failed+r.failedPackages > 0:
		return errors.New("tests failed")
	default:
		return nil
	}
}
