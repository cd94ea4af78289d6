package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestProgressIsALineThatIsWrittenOver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ total, writes int }{
		"one":  {1, 1},
		"few":  {7, 7},
		"many": {10_050, 101},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			report := progressLine(&out, "workspaces")
			for done := range test.total {
				report(done+1, test.total)
			}
			text := out.String()
			if n := strings.Count(text, "\r"); n != test.writes || strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, " workspaces\n") {
				t.Errorf("it wrote %d times, want %d on one line: %q", n, test.writes, text)
			}
		})
	}
	if report := (&program{stderr: &bytes.Buffer{}}).progress("workspaces"); report != nil {
		t.Error("progress is shown where nobody watches")
	}
}
